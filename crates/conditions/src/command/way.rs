//! How far an insertion of a file got, for whoever has to go on with it: also after Ctrl-C.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use service::out;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use base::many;

/// The exit code of what was interrupted.
const INTERRUPTED: i32 = 130;

/// How far it got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stand {
    /// How many objects are inserted, with those that were skipped.
    pub(super) done: u64,
    /// Where the last of them was read.
    pub(super) through: u64,
    /// How many are on their way, and where the last of them was read.
    pub(super) on_way: (u64, u64),
}

/// How far the insertion of a file got.
pub(super) struct Way {
    stand: Arc<Mutex<Stand>>,
    skip: u64,
    /// What is written before the number of a line, or of an object of a binary file.
    pub(super) prefix: String,
    word: &'static str,
    signals: Option<Handle>,
}

impl Way {
    /// Of a file, of which the first `skip` objects are left out. A signal that ends the program
    /// has it say how far it got, up to the end of this value.
    pub(super) fn of(file: &Path, is_binary: bool, skip: u64) -> Self {
        let (colon, word) = if is_binary { (": object ", "object") } else { (":", "line") };
        let prefix = format!("{}{colon}", file.display());
        let stand = Stand { done: skip, ..Stand::default() };
        let stand = Arc::new(Mutex::new(stand));
        let signals = on_signals(Arc::clone(&stand), skip, word);
        Self { stand, skip, prefix, word, signals }
    }

    /// Notes how far it got.
    pub(super) fn set(&self, change: impl FnOnce(&mut Stand)) {
        change(&mut self.stand.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Says how far it got, and how to go on.
    pub(super) fn said(&self) -> String {
        let stand = *self.stand.lock().unwrap_or_else(PoisonError::into_inner);
        said(stand, self.skip, self.word)
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.signals.iter().for_each(Handle::close);
    }
}

fn said(stand: Stand, skip: u64, word: &str) -> String {
    let Stand { done, through, on_way: (count, last) } = stand;
    let first = many(done, "object");
    let begin = match (done, done > skip) {
        (0, _) if count > 0 => "no object is known to be inserted".to_owned(),
        (0, _) => "nothing is inserted".to_owned(),
        (_, false) => format!("none behind the first {first}, which were skipped, is inserted"),
        (_, true) => format!("the first {first}, through {word} {through}, are inserted"),
    };
    match (count, done > skip) {
        (0, false) => begin,
        (0, true) => format!("{begin}: go on behind them with --skip {done}"),
        _ => format!(
            "{begin}, and it is unknown whether the next {count}, through {word} {last}, are, all \
             or none: ask for one of these, then go on with --skip {} if it is there, else with \
             --skip {done}",
            done + count
        ),
    }
}

/// Has a thread wait for signals; where there can be none, they end the program without a word.
fn on_signals(stand: Arc<Mutex<Stand>>, skip: u64, word: &'static str) -> Option<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).ok()?;
    let handle = signals.handle();
    let wait = move || {
        if signals.forever().next().is_some() {
            let stand = *stand.lock().unwrap_or_else(PoisonError::into_inner);
            out::note(format!("interrupted: {}", said(stand, skip, word)));
            signal_hook::low_level::exit(INTERRUPTED);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).ok()?;
    Some(handle)
}
