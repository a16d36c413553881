//! The service of gRPC's interoperability tests (grpc, doc/interop-test-descriptions.md).

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;

use crate::model::call::{Call, Received};
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

fn check(status: Option<&EchoStatus>) -> Result<(), Status> {
    match status {
        Some(EchoStatus { code, message }) if *code != 0 => {
            Err(Status::new(Code::of(*code), message.clone()))
        }
        _ => Ok(()),
    }
}

/// Refuses a message that came compressed where it was not meant to, or the other way round.
fn expect(compressed: Option<&BoolValue>, was_compressed: bool) -> Result<(), Status> {
    match compressed {
        Some(BoolValue { value }) if *value != was_compressed => {
            let words = format!("expect_compressed is {value}, compressed is {was_compressed}");
            Err(Status::new(Code::InvalidArgument, words))
        }
        _ => Ok(()),
    }
}

pub(super) async fn empty(mut call: Call) -> Result<(), Status> {
    call.receive_only::<Empty>().await?;
    echo_metadata(&call);
    call.send(&Empty {}).await;
    Ok(())
}

pub(super) async fn unary(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let (request, was_compressed) = call.receive_only::<SimpleRequest>().await?;
    expect(request.expect_compressed.as_ref(), was_compressed)?;
    check(request.response_status.as_ref())?;
    let payload = payload(request.response_size)?;
    let answer = SimpleResponse { payload, ..SimpleResponse::default() };
    let compressed = request.response_compressed;
    // It may be large, and the answer may wait for its client.
    drop(request);
    match compressed {
        Some(BoolValue { value }) => call.send_compressed(&answer, value).await,
        None => call.send(&answer).await,
    }
    Ok(())
}

/// What the answers that are asked for take; two bytes on the wire ask for one.
fn list_bytes(parameters: &Vec<ResponseParameters>) -> usize {
    size_of::<ResponseParameters>() * parameters.capacity()
}

/// The answers that are asked for, and the status. A payload, which may be large, is gone.
type Asked = (Vec<ResponseParameters>, Option<EchoStatus>);

fn asked(request: Received<StreamingOutputCallRequest>) -> Received<Asked> {
    let mut asked = request.map(|request| (request.response_parameters, request.response_status));
    let status = asked.1.as_ref().map_or(0, |status| status.message.len());
    asked.count(list_bytes(&asked.0) + status);
    asked
}

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
    let (request, _) = call.receive_only().await?;
    let asked = asked(request);
    send_all(&mut call, &asked.0).await?;
    check(asked.1.as_ref())
}

pub(super) async fn input(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    let mut sum: i32 = 0;
    while let Some(received) = call.receive_marked::<StreamingInputCallRequest>().await? {
        let (request, was_compressed) = received;
        expect(request.expect_compressed.as_ref(), was_compressed)?;
        let length = request.payload.as_ref().map_or(0, |payload| payload.body.len());
        sum = sum.saturating_add(i32::try_from(length).unwrap_or(i32::MAX));
    }
    call.send(&StreamingInputCallResponse { aggregated_payload_size: sum }).await;
    Ok(())
}

pub(super) async fn full_duplex(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    while let Some(request) = call.receive().await? {
        let asked = asked(request);
        check(asked.1.as_ref())?;
        send_all(&mut call, &asked.0).await?;
    }
    Ok(())
}

pub(super) async fn half_duplex(mut call: Call) -> Result<(), Status> {
    echo_metadata(&call);
    // One list: a request that asks for nothing leaves nothing.
    let (mut all, mut held) = (Vec::new(), call.hold(0));
    while let Some(request) = call.receive().await? {
        let asked = asked(request);
        check(asked.1.as_ref())?;
        all.extend_from_slice(&asked.0);
        held.set(list_bytes(&all));
    }
    send_all(&mut call, &all).await
}
