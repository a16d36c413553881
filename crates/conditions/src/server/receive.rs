//! Bodies of requests: limits of time, and of the memory of all of them together.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;

/// How long nothing of a body may come.
const IDLE: Duration = Duration::from_secs(10);

/// How long all of it may take, beside the time that it takes at this rate.
const WHOLE: Duration = Duration::from_secs(60);
const BYTES_PER_S: usize = 1 << 20;

/// Room for what is received, and for what is made of it, until this is dropped.
pub(crate) struct Room {
    all: Arc<Semaphore>,
    own: Option<OwnedSemaphorePermit>,
    kib: usize,
}

impl Room {
    fn of(all: &Arc<Semaphore>) -> Self {
        Self { all: all.clone(), own: None, kib: 0 }
    }

    /// All of it, for what is made of the body.
    pub(crate) fn permit(self) -> Option<OwnedSemaphorePermit> {
        self.own
    }

    /// Makes it room for this many bytes.
    ///
    /// # Errors
    /// When there is none left.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        let more = bytes.div_ceil(1024).saturating_sub(self.kib);
        let taken = self.all.clone().try_acquire_many_owned(more as u32).map_err(|_| {
            let error = "the requests that are being received are too large together";
            Fault::new(StatusCode::SERVICE_UNAVAILABLE, error, "send it again later")
        })?;
        self.kib += more;
        match &mut self.own {
            Some(own) => own.merge(taken),
            None => self.own = Some(taken),
        }
        Ok(())
    }
}

/// Receives a body of at most `length` bytes.
///
/// # Errors
/// When it is not all of it, comes too slowly, or there is no room for it.
pub(crate) async fn receive(
    all: &Arc<Semaphore>,
    mut body: Body,
    length: usize,
) -> Result<(Vec<u8>, Room), Fault> {
    let end = Instant::now() + WHOLE + Duration::from_secs((length / BYTES_PER_S) as u64);
    let (mut received, mut room) = (Vec::new(), Room::of(all));
    let unread = || Fault::bad("the body can't be read", "send all of it");
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = timeout_at(end.min(Instant::now() + IDLE), frame).await.map_err(|_| {
            let error = "the body comes too slowly";
            let fix = "send all of it at once; docs/conditions.md states the limits";
            Fault::new(StatusCode::REQUEST_TIMEOUT, error, fix)
        })?;
        let Some(frame) = frame else { return Ok((received, room)) };
        let Ok(data) = frame.map_err(|_| unread())?.into_data() else { continue };
        let bytes = received.len() + data.len();
        if bytes > length {
            return Err(unread());
        }
        room.grow(bytes)?;
        received.extend_from_slice(&data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_takes_room_for_what_has_come_of_it() {
        let all = Arc::new(Semaphore::new(100));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let receive =
            |bytes: usize| runtime.block_on(receive(&all, Body::from(vec![7; bytes]), 1 << 20));
        let (body, mut room) = receive(60 << 10).expect("there is room");
        assert_eq!((body.len(), all.available_permits()), (60 << 10, 40));
        room.grow(61 << 10).expect("there is room");
        assert_eq!(all.available_permits(), 39);
        let status = |refused: Result<_, Fault>| refused.map(drop).expect_err("too much").status;
        assert_eq!(status(receive(60 << 10)), StatusCode::SERVICE_UNAVAILABLE);
        drop(room);
        assert_eq!(all.available_permits(), 100);
        assert_eq!(status(receive(2 << 20)), StatusCode::BAD_REQUEST);
    }
}
