//! Files of segments as the system maps them. The only `unsafe` code of this service: the bytes of
//! a mapping change when its file does.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bytes::Bytes;
use memmap2::{Advice, Mmap};
use rustix::mm;

use crate::model::index_end;

/// What is read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// What answers need.
    Some,
    /// All of it, from its begin to its end.
    All,
}

/// The bytes of a file, for as long as any of them is used.
///
/// # Errors
/// The system's, and when it is no regular file.
#[allow(unsafe_code)]
pub(super) fn map(path: &Path, reads: Reads) -> io::Result<Bytes> {
    // A pipe of that name would be waited for.
    let file = OpenOptions::new().read(true).custom_flags(base::no_wait()).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        let what = base::kind_name(kind);
        return Err(io::Error::other(format!("it is {what}, and has to be a regular file")));
    }
    // SAFETY: the mapping is only read, and nothing of this program writes to a segment once it
    // has been stored: it is removed, which leaves the mapping as it is. The data directory is
    // locked and its owner's alone. Whoever cuts a file in it all the same ends the process by a
    // signal (SIGBUS), as an error of the disk does; whoever changes it is noticed where the bytes
    // have not been checked yet, and no value of theirs is trusted to be in bounds.
    let map = unsafe { Mmap::map(&file)? };
    if reads == Reads::Some {
        // A slice needs few pages of each: what the system would read around one of them, often
        // megabytes, is read for nothing. The index is needed whole, at once.
        let advised = map.advise(Advice::Random).and_then(|()| {
            let index = index_end(&map).and_then(|end| usize::try_from(end).ok()).unwrap_or(0);
            let starts = (0..index.min(map.len())).step_by(AHEAD_BYTES);
            let mut parts = starts.map(|at| (at, AHEAD_BYTES.min(map.len() - at)));
            parts.try_for_each(|(at, size)| map.advise_range(Advice::WillNeed, at, size))
        });
        if let Err(why) = advised {
            tracing::debug!("{}: the system takes no advice: {why}", path.display());
        }
    }
    Ok(Bytes::from_owner(map))
}

/// The most that is asked for by one call, of which the system reads no more than its readahead
/// or the disk's largest request, whichever is larger.
const AHEAD_BYTES: usize = 128 << 10;

/// Has the system read from the disk what it doesn't have of these bytes of a file that is mapped,
/// and waits for none of it.
pub(super) fn read_ahead(bytes: &[u8]) {
    bytes.chunks(AHEAD_BYTES).for_each(will_need);
}

#[allow(unsafe_code)]
fn will_need(bytes: &[u8]) {
    // Advice is of whole pages; the one that they begin in belongs to the same mapping.
    let into_page = bytes.as_ptr().addr() % rustix::param::page_size();
    let begin = bytes.as_ptr().wrapping_byte_sub(into_page).cast_mut().cast();
    // SAFETY: this advice changes no byte of any memory, and the system refuses what is not mapped.
    let advised = unsafe { mm::madvise(begin, bytes.len() + into_page, mm::Advice::WillNeed) };
    if let Err(why) = advised {
        tracing::debug!("the system takes no advice: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_little_is_read_the_system_reads_no_more_than_that() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, reads) in [("some", Reads::Some), ("all", Reads::All)] {
            let path = folder.path().join(name);
            std::fs::write(&path, [7; 10_000]).expect("written");
            let bytes = map(&path, reads).expect("mapped");
            assert_eq!(bytes[..], [7; 10_000]);
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux");
            let own = maps.split(path.to_str().expect("text")).nth(1).expect("its mapping");
            let flags = own.lines().find_map(|line| line.strip_prefix("VmFlags:"));
            let is_random = flags.expect("flags").split(' ').any(|flag| flag == "rr");
            assert_eq!(is_random, reads == Reads::Some, "{name}");
        }
    }
}
