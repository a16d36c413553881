//! Loadline's own functions: `loadline.rpc.v1.Table`.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;

use crate::model::call::{Call, Here, Info};
use crate::protocol::message::{Anything, decode};
use crate::protocol::proto::table::{Number, Pause, Place};
use crate::protocol::status::{Code, Status};

/// The longest that a call may sleep.
const MOST_SLEEP: Duration = Duration::from_secs(60);

/// Returns the message as it came, with fields that are not known here.
pub(super) fn echo(message: Bytes) -> Result<Bytes, Status> {
    decode::<Anything>(message.clone())?;
    Ok(message)
}

/// Adds to the total, and returns it. It wraps around, as 64 bits do.
pub(super) fn add(total: &AtomicI64, number: Number) -> Result<Number, Status> {
    let before = total.fetch_add(number.value, Relaxed);
    Ok(Number { value: before.wrapping_add(number.value) })
}

/// Returns after a time.
pub(super) async fn sleep(mut call: Call) -> Result<(), Status> {
    let (bytes, _) = call.receive_only().await?;
    let Pause { ns } = decode(bytes)?;
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
    Ok(Place { pid: info.pid, core, carrier, reads, writes, system_calls })
}
