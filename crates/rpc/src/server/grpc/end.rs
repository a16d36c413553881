//! How and why calls end before their functions do, or what ends them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::super::shared::{Shared, Stage};
use crate::protocol::frames::Reader;
use crate::protocol::status::{Code, Status};

/// Why a call goes no further.
pub(super) enum End {
    /// The client has given it up: there is no one to answer.
    GivenUp,
    /// It ends with a status.
    Status(Status),
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// What is waited for.
pub(super) type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until the server is at this stage, or a later one.
pub(super) fn until(shared: Arc<Shared>, wanted: Stage) -> Waiting {
    Box::pin(async move {
        let mut stage = shared.stage();
        // The channel is part of what is shared.
        let _ = stage.wait_for(|stage| *stage >= wanted).await;
    })
}

/// The one message of a body that has ended.
pub(super) fn only(reader: &mut Reader) -> Result<Bytes, Status> {
    let Some((message, _)) = reader.next()? else {
        reader.finish()?;
        return Err(no_message());
    };
    match reader.next()? {
        Some(_) => Err(several_messages()),
        None => reader.finish().map(|()| message),
    }
}

/// Where one message is due.
pub(super) fn no_message() -> Status {
    Status::new(Code::Unimplemented, "no message came where one request has to")
}

/// As above.
pub(super) fn several_messages() -> Status {
    Status::new(Code::Unimplemented, "several messages came where one request has to")
}

/// A deadline is over.
pub(super) fn passed() -> Status {
    Status::new(Code::DeadlineExceeded, "the deadline of the call has passed")
}
