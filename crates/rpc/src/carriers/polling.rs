//! Waiting for descriptors.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits for two descriptors: bytes of `input`, and room at `output` if it is there.
pub(super) fn wait_for(
    input: &impl AsFd,
    output: Option<&impl AsFd>,
    until: Option<Instant>,
) -> io::Result<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(timespec);
    let mut all = vec![PollFd::new(input, PollFlags::IN)];
    all.extend(output.map(|output| PollFd::new(output, PollFlags::OUT)));
    match poll(&mut all, left.as_ref()) {
        Ok(_) => Ok(all.first().is_some_and(|first| !first.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn timespec(time: Duration) -> Timespec {
    // A year is as good as any longer time.
    let time = time.min(Duration::from_secs(365 * 24 * 3_600));
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}
