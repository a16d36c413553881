//! The terminal: taken for the view, and given back as it was found, whatever ends the run.
//!
//! Only what can be undone by one write and one call is changed: the other screen, the cursor, and
//! the echo of what is typed. Ctrl-C stays a signal. Whoever gives the terminal back (the end of
//! the run, a second Ctrl-C, a panic) does it once, and nothing is drawn after it.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

/// The other screen, without a cursor.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l";

/// Everything is wiped.
const WIPE: &[u8] = b"\x1b[2J";

/// Columns and rows of a usual terminal.
const USUAL: (u16, u16) = (80, 24);

/// No colours, the cursor, and the screen that was there before.
const GIVE_BACK: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// How the terminal was found, while it is taken; and how often it was.
static TAKEN: Mutex<(Option<Termios>, u32)> = Mutex::new((None, 0));

/// How long giving back waits for a frame that is being written, in tries of 1 ms.
const PATIENCE: u32 = 200;

/// Whether the terminal is ours to take: a job in the background would be stopped for it.
pub(super) fn in_foreground() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Takes the terminal, and sees to it that a panic gives it back before it prints anything.
pub(super) fn take() -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
    let found = tcgetattr(io::stderr())?;
    let mut quiet = found.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let mut taken = locked();
    tcsetattr(io::stderr(), OptionalActions::Now, &quiet)?;
    *taken = (Some(found), taken.1 + 1);
    io::stderr().write_all(TAKE)
}

/// Gives the terminal back, if it is taken.
pub(super) fn give_back() {
    for _ in 0..PATIENCE {
        let mut taken = match TAKEN.try_lock() {
            Ok(taken) => taken,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        if let Some(found) = taken.0.take() {
            // A terminal that is gone needs nothing.
            let _ = io::stderr().write_all(GIVE_BACK);
            let _ = tcsetattr(io::stderr(), OptionalActions::Now, &found);
        }
        return;
    }
}

/// What a frame is drawn on: the whole frame is drawn again when this has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Canvas {
    /// How often the terminal was taken by then.
    taken: u32,
    pub(super) area: Rect,
}

impl Canvas {
    /// What there is now. A terminal that doesn't know its size is of the usual one.
    pub(super) fn now() -> Self {
        let size = tcgetwinsize(io::stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let (width, height) = if size.0 > 0 && size.1 > 0 { size } else { USUAL };
        Self { taken: locked().1, area: Rect::new(0, 0, width, height) }
    }

    /// A terminal on it, from which everything has been wiped. It asks the terminal nothing: the
    /// answer would come among what is typed.
    pub(super) fn wiped(self) -> io::Result<Terminal<CrosstermBackend<Out>>> {
        let mut out = Out::default();
        out.write_all(WIPE)?;
        let viewport = Viewport::Fixed(self.area);
        Terminal::with_options(CrosstermBackend::new(out), TerminalOptions { viewport })
    }
}

fn locked() -> MutexGuard<'static, (Option<Termios>, u32)> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard error, a frame at a time, while the terminal is taken.
#[derive(Debug, Default)]
pub(super) struct Out(Vec<u8>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let taken = locked();
        let written = match taken.0 {
            Some(_) => io::stderr().write_all(&self.0),
            None => Ok(()),
        };
        self.0.clear();
        written
    }
}
