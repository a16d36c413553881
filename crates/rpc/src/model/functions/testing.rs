//! The service of gRPC's interoperability tests (grpc, doc/interop-test-descriptions.md).

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;

use crate::model::call::Call;
use crate::protocol::message::decode;
use crate::protocol::proto::testing::{
    BoolValue, EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, SimpleResponse,
    StreamingInputCallRequest, StreamingInputCallResponse, StreamingOutputCallRequest,
    StreamingOutputCallResponse,
};
use crate::protocol::status::{Code, Status};

/// The most bytes of a payload that can be asked for.
const MOST_BYTES: i32 = 16 << 20;

/// What payloads are parts of. Memory that is only read takes none while it is zero, and parts of
/// what is never freed need no count.
static ZEROS: LazyLock<&[u8]> = LazyLock::new(|| vec![0; MOST_BYTES as usize].leak());

/// The longest time between two answers that can be asked for.
const MOST_INTERVAL_US: i32 = 60_000_000;

/// Names of metadata that come back.
const ECHO_HEADER: &str = "x-grpc-test-echo-initial";
const ECHO_TRAILER: &str = "x-grpc-test-echo-trailing-bin";

fn echo_metadata(call: &Call) {
    for (name, value) in call.info.metadata.iter() {
        match name {
            ECHO_HEADER => call.add_header(name, value.clone()),
            ECHO_TRAILER => call.add_trailer(name, value.clone()),
            _ => {}
        }
    }
}

fn payload(size: i32) -> Result<Option<Payload>, Status> {
    if !(0..=MOST_BYTES).contains(&size) {
        let words = format!("a payload of {size} bytes is not between 0 and {MOST_BYTES}");
        return Err(Status::new(Code::InvalidArgument, words));
    }
    Ok(Some(Payload { r#type: 0, body: Bytes::from_static(&ZEROS[..size as usize]) }))
}

fn check(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(EchoStatus { code, message }) if code != 0 => {
            Err(Status::new(Code::of(code), message))
        }
        _ => Ok(()),
    }
}

/// Refuses a message that came compressed where it was not meant to, or the other way round.
fn expect(compressed: Option<BoolValue>, was_compressed: bool) -> Result<(), Status> {
    match compressed {
        Some(BoolValue { value }) if value != was_compressed => {
            let words = format!("expect_compressed is {value}, compressed is {was_compressed}");
            Err(Status::new(Code::InvalidArgument, words))
        }
        _ => Ok(()),
    }
}

pub(super) async fn empty(mut call: Call) -> Result<(), Status> {
    let (bytes, _) = call.receive_only().await?;
    decode::<Empty>(&bytes)?;
    echo_metadata(&call);
    call.send(&Empty {}).await;
    Ok(())
}

pub(super) async fn unary(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let (bytes, was_compressed) = call.receive_only().await?;
    let request: SimpleRequest = decode(&bytes)?;
    expect(request.expect_compressed, was_compressed)?;
    check(request.response_status)?;
    let payload = payload(request.response_size)?;
    let answer = SimpleResponse { payload, ..SimpleResponse::default() };
    match request.response_compressed {
        Some(BoolValue { value }) => call.send_compressed(&answer, value).await,
        None => call.send(&answer).await,
    }
    Ok(())
}

/// What an answer that is asked for takes while it is kept; two bytes on the wire ask for one.
const KEPT_BYTES: usize = 32;

async fn send_all(call: &mut Call, parameters: &[ResponseParameters]) -> Result<(), Status> {
    for ResponseParameters { size, interval_us, compressed } in parameters {
        if !(0..=MOST_INTERVAL_US).contains(interval_us) {
            let words = format!("an interval of {interval_us} µs is not between 0 and 60 s");
            return Err(Status::new(Code::InvalidArgument, words));
        }
        call.sleep(Duration::from_micros(*interval_us as u64)).await;
        let answer = StreamingOutputCallResponse { payload: payload(*size)? };
        match compressed {
            Some(BoolValue { value }) => call.send_compressed(&answer, *value).await,
            None => call.send(&answer).await,
        }
    }
    Ok(())
}

pub(super) async fn output(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let (bytes, _) = call.receive_only().await?;
    let request: StreamingOutputCallRequest = decode(&bytes)?;
    call.keep(KEPT_BYTES * request.response_parameters.len());
    send_all(&mut call, &request.response_parameters).await?;
    check(request.response_status)
}

pub(super) async fn input(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let mut sum: i32 = 0;
    while let Some(received) = call.receive_marked::<StreamingInputCallRequest>().await? {
        let (request, was_compressed) = received;
        expect(request.expect_compressed, was_compressed)?;
        let length = request.payload.map_or(0, |payload| payload.body.len());
        sum = sum.saturating_add(i32::try_from(length).unwrap_or(i32::MAX));
    }
    call.send(&StreamingInputCallResponse { aggregated_payload_size: sum }).await;
    Ok(())
}

pub(super) async fn full_duplex(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    while let Some(request) = call.receive::<StreamingOutputCallRequest>().await? {
        check(request.response_status)?;
        let kept = KEPT_BYTES * request.response_parameters.len();
        call.keep(kept);
        send_all(&mut call, &request.response_parameters).await?;
        call.release(kept);
    }
    Ok(())
}

pub(super) async fn half_duplex(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let mut kept = Vec::new();
    while let Some(request) = call.receive::<StreamingOutputCallRequest>().await? {
        check(request.response_status)?;
        call.keep(KEPT_BYTES * request.response_parameters.len());
        kept.extend(request.response_parameters);
    }
    send_all(&mut call, &kept).await
}
