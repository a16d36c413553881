//! Output: results on standard output, everything else on standard error.
//!
//! The reader of standard output may close it at any time, as `head` does. That ends no run,
//! changes no exit code and is distinct from a broken connection.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Stdout, Write};

/// Prints a result, whole; once the reader has closed standard output, nothing.
///
/// # Errors
/// When it can't be written, as on a full disk.
pub fn print(text: impl Display) -> io::Result<()> {
    let mut out = stream();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.or_else(|error| if is_unread(&error) { Ok(()) } else { Err(error) })
}

/// Writes a line to standard error. A failure to write it is ignored.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Standard output for continuous results: `is_unread` of its error is true once the reader has
/// closed it.
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

/// The reader of standard output has closed it.
#[derive(Debug)]
struct Unread;

impl Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed by its reader")
    }
}

impl std::error::Error for Unread {}

fn marked(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => io::Error::new(ErrorKind::BrokenPipe, Unread),
        _ => error,
    }
}

/// Whether the error is that the reader of standard output has closed it.
pub fn is_unread(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Unread>())
}
