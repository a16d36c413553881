//! The sending half of a connection, for another thread than the one that receives.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{retry_on_intr, writev};
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, sendmsg, shutdown};

use super::polling::timespec;

/// Sends; once it is dropped, the connection ends.
#[derive(Debug)]
pub struct Sender {
    file: OwnedFd,
    is_socket: bool,
}

impl Sender {
    /// Sends by a socket.
    pub(super) fn socket(file: OwnedFd) -> Self {
        Self { file, is_socket: true }
    }

    /// Sends by a pipe, whose writes don't wait.
    pub(super) fn pipe(file: OwnedFd) -> Self {
        Self { file, is_socket: false }
    }

    /// Hands over as many of these bytes as there is room for now.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room; others when the connection has broken.
    pub(crate) fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut none = SendAncillaryBuffer::default();
        let sent = retry_on_intr(|| match self.is_socket {
            true => sendmsg(&self.file, pieces, &mut none, flags),
            false => writev(&self.file, pieces),
        });
        Ok(sent?)
    }

    /// Waits until there is room, or a time.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub(crate) fn wait_for_room(&self, until: Option<Instant>) -> io::Result<()> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut files = [PollFd::new(&self.file, PollFlags::OUT)];
        match poll(&mut files, left.map(timespec).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.is_socket {
            // The receiving half learns of it. One that has ended needs no more.
            let _ = shutdown(&self.file, Shutdown::Both);
        }
    }
}
