//! Signals while a run goes on: the first Ctrl-C or SIGTERM ends it in good order, and none leaves
//! the terminal taken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::screen;

/// The exit code of what was interrupted.
const INTERRUPTED: i32 = 130;

/// Set by the first Ctrl-C or SIGTERM; a second one ends the program at once.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    on_signals(&[SIGINT, SIGTERM], move |_| {
        if flag.swap(true, Ordering::Relaxed) {
            screen::give_back();
            low_level::exit(INTERRUPTED);
        }
    })?;
    Ok(stop)
}

/// Restores the terminal before a signal ends or pauses the program, and takes it again when the
/// program continues in the foreground.
pub(super) fn keep_the_terminal(wanted: Arc<AtomicBool>) -> io::Result<()> {
    on_signals(&[SIGHUP, SIGQUIT, SIGTSTP], move |signal| {
        screen::give_back();
        // Only a pause comes back from here; what can't be done leaves the program as it is.
        let _ = low_level::emulate_default_handler(signal);
        if wanted.load(Ordering::Relaxed) && screen::in_foreground() {
            let _ = screen::take();
        }
    })
}

/// A thread that does what is to be done about signals, as a handler may do next to nothing.
fn on_signals(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    let act = move || signals.forever().for_each(&mut act);
    std::thread::Builder::new().name("signals".into()).spawn(act).map(drop)
}
