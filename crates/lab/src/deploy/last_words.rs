//! How a process ended, and the last lines of its output.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use rustix::process::Signal;

pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with status {code}"),
        (None, Some(signal)) if signal == Signal::XFSZ.as_raw() => {
            "it was ended because it wrote a larger file than ulimit -f allows".to_owned()
        }
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The last bytes of a file, which may be long.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    const MAX_BYTES: u64 = 64 << 10;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    let mut end = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// The last lines of what a target printed, as the rest of a sentence.
pub(super) fn last_lines(folder: &Path, log: &str) -> String {
    let end = |name| end_of(&folder.join(format!("{log}{name}"))).unwrap_or_default();
    let said = [end("stdout"), end("stderr")].concat();
    format!("; {}", crate::last_lines::last_lines(&String::from_utf8_lossy(&said)))
}
