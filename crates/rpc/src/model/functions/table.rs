//! Loadline's own functions: `loadline.rpc.v1.Table`.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use crate::model::call::{Call, Here, Info};
use crate::protocol::message::{Anything, decode};
use crate::protocol::status::{Code, Status};
use crate::protocol::table::{Number, Pause, Place};

/// The longest that a call may sleep.
const MOST_SLEEP: Duration = Duration::from_secs(60);

/// What of a sample lies within another, for the limit of depth. Each further one takes the place
/// of the one before, so that this takes no memory for their number.
#[derive(Clone, PartialEq, Message)]
struct Nested {
    #[prost(message, optional, boxed, tag = "6")]
    inner: Option<Box<Nested>>,
    #[prost(message, optional, tag = "9")]
    boxed: Option<Anything>,
    #[prost(message, optional, boxed, tag = "11")]
    samples: Option<Box<Nested>>,
}

/// Returns the message as it came, with fields that are not known here.
pub(super) fn echo(message: Bytes) -> Result<Bytes, Status> {
    decode::<Nested>(&message)?;
    Ok(message)
}

/// Adds to the total, and returns it. It wraps around, as 64 bits do.
pub(super) fn add(total: &AtomicI64, number: Number) -> Result<Number, Status> {
    let before = total.fetch_add(number.value, Relaxed);
    Ok(Number { value: before.wrapping_add(number.value) })
}

/// Returns after a time.
pub(super) async fn sleep(mut call: Call) -> Result<(), Status> {
    // The request, which may be large, is gone before it waits.
    let ns = call.receive_only::<Pause>().await?.0.ns;
    let time = Duration::from_nanos(ns);
    if time > MOST_SLEEP {
        let words = format!("{ns} ns are more than the 60 s that a call may sleep");
        return Err(Status::new(Code::InvalidArgument, words));
    }
    call.sleep(time).await;
    call.send(&()).await;
    Ok(())
}

/// Says where it runs.
pub(super) fn who(info: &Info, (): ()) -> Result<Place, Status> {
    let Here { core, reads, writes, system_calls } = (info.here)();
    let carrier = info.carrier.to_owned();
    let (pid, calls) = (info.pid, info.calls);
    Ok(Place { pid, core, carrier, reads, writes, system_calls, calls })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::encode;
    use crate::protocol::table::Sample;

    #[test]
    fn what_is_returned_is_no_deeper_than_a_client_reads() {
        let within = |inner| Sample { inner: Some(Box::new(inner)), ..Sample::default() };
        let chain = |depth| (1..depth).fold(Sample::default(), |inner, _| within(inner));
        for depth in 1..130 {
            let message = encode(&chain(depth));
            let is_read = decode::<Sample>(&message).is_ok();
            assert_eq!(echo(message.clone()).is_ok(), is_read, "{depth}");
            assert_eq!(is_read, depth <= 101, "a message, and 100 within it");
        }
        let samples = vec![chain(120)];
        let status = echo(encode(&Sample { samples, ..Sample::default() })).expect_err("too deep");
        assert_eq!(status.code, Code::Internal);
        assert!(status.message.contains("recursion limit"), "{status}");
    }
}
