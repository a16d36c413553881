//! What the command says: what it found on standard output, everything else on standard error.
//!
//! Whoever reads may go away at any time, as `head` does. That ends no run, changes no exit code
//! and is told apart from a connection that breaks.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Stdout, Write};

/// Prints a result, whole; where nobody reads it any more, the rest is left out.
///
/// # Errors
/// When it can't be written, as on a full disk.
pub fn print(text: impl Display) -> io::Result<()> {
    let mut out = stream();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.or_else(|error| if is_unread(&error) { Ok(()) } else { Err(error) })
}

/// Says something on standard error, in a line. That it can't be said is no reason to end.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Standard output for what goes on until nobody reads it: `is_unread` of its error says so.
pub fn stream() -> Stream {
    Stream(io::stdout())
}

/// Standard output.
pub struct Stream(Stdout);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(marked)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(marked)
    }
}

/// Whoever read standard output has gone.
#[derive(Debug)]
struct Unread;

impl Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads standard output any more")
    }
}

impl std::error::Error for Unread {}

fn marked(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => io::Error::new(ErrorKind::BrokenPipe, Unread),
        _ => error,
    }
}

/// Whether this is about a standard output that nobody reads any more.
pub fn is_unread(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Unread>())
}
