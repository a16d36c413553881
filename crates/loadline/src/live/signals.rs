//! Signals while a run goes on: the first Ctrl-C or SIGTERM ends it in good order, as does SIGHUP,
//! which comes when the terminal closes; and none leaves the terminal taken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::screen;

/// The exit code of what was interrupted.
const INTERRUPTED: i32 = 130;

/// Set by the first Ctrl-C, SIGTERM or SIGHUP; a second one ends the program at once, but for
/// SIGHUP: a shell whose terminal closes sends it beside the kernel. Where it is ignored, as under
/// nohup(1), it stays so.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let hangs_up = if is_ignored(SIGHUP) { None } else { Some(SIGHUP) };
    let signals: Vec<i32> = [SIGINT, SIGTERM].into_iter().chain(hangs_up).collect();
    on_signals(&signals, move |signal| {
        if flag.swap(true, Ordering::Relaxed) && signal != SIGHUP {
            screen::give_back();
            low_level::exit(INTERRUPTED);
        }
    })?;
    Ok(stop)
}

/// Restores the terminal before a signal ends or pauses the program, and takes it again when the
/// program continues in the foreground.
pub(super) fn keep_the_terminal(wanted: Arc<AtomicBool>) -> io::Result<()> {
    on_signals(&[SIGQUIT, SIGTSTP], move |signal| {
        screen::give_back();
        // Only a pause comes back from here; what can't be done leaves the program as it is.
        let _ = low_level::emulate_default_handler(signal);
        if wanted.load(Ordering::Relaxed) && screen::in_foreground() {
            let _ = screen::take();
        }
    })
}

/// Whether this process was started with a signal ignored (`SigIgn`, proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A thread that does what is to be done about signals, as a handler may do next to nothing.
fn on_signals(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    let act = move || signals.forever().for_each(&mut act);
    std::thread::Builder::new().name("signals".into()).spawn(act).map(drop)
}
