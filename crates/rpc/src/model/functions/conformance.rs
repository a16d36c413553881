//! The service of the conformance suite of Connect: each request says what is to be answered.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use prost_types::Any;

use crate::model::call::Call;
use crate::protocol::message::decode;
use crate::protocol::metadata::{Metadata, from_base64, is_binary, to_base64};
use crate::protocol::proto::conformance::conformance_payload::RequestInfo;
use crate::protocol::proto::conformance::unary_response_definition::Response;
use crate::protocol::proto::conformance::{
    BidiStreamRequest, BidiStreamResponse, ClientStreamRequest, ClientStreamResponse,
    ConformancePayload, Error, Header, IdempotentUnaryRequest, IdempotentUnaryResponse,
    ServerStreamRequest, ServerStreamResponse, StreamResponseDefinition, UnaryRequest,
    UnaryResponse, UnaryResponseDefinition,
};
use crate::protocol::status::{Code, Status};

/// A request as it is named in an answer.
fn any(message: &str, value: Bytes) -> Any {
    let package = "connectrpc.conformance.v1";
    Any { type_url: format!("type.googleapis.com/{package}.{message}"), value: value.into() }
}

/// A request that is kept until its call ends, as a copy.
fn kept(call: &Call, message: &str, value: Bytes) -> Any {
    call.keep_until_end(value.len() + KEPT_BYTES);
    any(message, value)
}

/// Headers by name, in the order in which the names came first.
fn headers(metadata: &Metadata) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for (name, value) in metadata.iter() {
        let value = match is_binary(name) {
            true => to_base64(value),
            false => String::from_utf8_lossy(value).into_owned(),
        };
        match headers.iter_mut().find(|header| header.name == name) {
            Some(header) => header.value.push(value),
            None => headers.push(Header { name: name.to_owned(), value: vec![value] }),
        }
    }
    headers
}

fn info(call: &Call, requests: Vec<Any>) -> RequestInfo {
    call.keep_until_end(call.info.metadata.kept_bytes());
    let timeout_ms = call.info.timeout.map(|time| time.as_millis() as i64);
    RequestInfo { request_headers: headers(&call.info.metadata), timeout_ms, requests }
}

/// Values of `-bin` names are written as base64.
fn values(headers: Vec<Header>) -> impl Iterator<Item = (String, Bytes)> {
    headers.into_iter().flat_map(|Header { name, value }| {
        let name = name.to_ascii_lowercase();
        value.into_iter().map(move |value| {
            let bytes = is_binary(&name).then(|| from_base64(value.as_bytes())).flatten();
            let bytes = bytes.and_then(|all| all.into_iter().next());
            (name.clone(), bytes.unwrap_or_else(|| value.into()))
        })
    })
}

/// What a request, or a part of an answer that is asked for, takes beside its bytes while it is
/// kept.
const KEPT_BYTES: usize = 128;

fn add(call: &Call, before: Vec<Header>, behind: Vec<Header>) {
    let count = before.iter().chain(&behind).map(|header| 1 + header.value.len()).sum::<usize>();
    call.keep_until_end(KEPT_BYTES * count);
    values(before).for_each(|(name, value)| call.add_header(name, value));
    values(behind).for_each(|(name, value)| call.add_trailer(name, value));
}

/// Counts the messages that are asked for, and the details of an error.
fn keep_parts(call: &Call, messages: usize, error: Option<&Error>) {
    call.keep_until_end(KEPT_BYTES * (messages + error.map_or(0, |error| error.details.len())));
}

/// An error as it is asked for, with what was requested where no answer has said it.
fn error(error: Error, info: Option<RequestInfo>) -> Status {
    let mut details = error.details;
    if let Some(info) = info {
        details.push(any("ConformancePayload.RequestInfo", info.encode_to_vec().into()));
    }
    Status::with_details(Code::of(error.code), error.message.unwrap_or_default(), details)
}

fn delay(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

/// The answer to one request, or to several that count as one.
async fn answered(
    call: &mut Call,
    definition: Option<UnaryResponseDefinition>,
    requests: Vec<Any>,
) -> Result<Option<ConformancePayload>, Status> {
    let info = info(call, requests);
    let Some(definition) = definition else {
        let request_info = Some(info);
        return Ok(Some(ConformancePayload { data: Bytes::new(), request_info }));
    };
    add(call, definition.response_headers, definition.response_trailers);
    if let Some(Response::Error(wanted)) = &definition.response {
        keep_parts(call, 0, Some(wanted));
    }
    call.sleep(delay(definition.response_delay_ms)).await;
    match definition.response {
        Some(Response::Error(wanted)) => Err(error(wanted, Some(info))),
        Some(Response::ResponseData(data)) => {
            Ok(Some(ConformancePayload { data, request_info: Some(info) }))
        }
        None => Ok(Some(ConformancePayload { data: Bytes::new(), request_info: Some(info) })),
    }
}

pub(super) async fn unary(mut call: Call) -> Result<(), Status> {
    let bytes = call.receive_only_bytes().await?;
    let request: UnaryRequest = decode(&bytes)?;
    let requests = vec![kept(&call, "UnaryRequest", bytes)];
    let payload = answered(&mut call, request.response_definition, requests).await?;
    call.send(&UnaryResponse { payload }).await;
    Ok(())
}

pub(super) async fn idempotent(mut call: Call) -> Result<(), Status> {
    let bytes = call.receive_only_bytes().await?;
    let request: IdempotentUnaryRequest = decode(&bytes)?;
    let requests = vec![kept(&call, "IdempotentUnaryRequest", bytes)];
    let payload = answered(&mut call, request.response_definition, requests).await?;
    call.send(&IdempotentUnaryResponse { payload }).await;
    Ok(())
}

pub(super) async fn client_stream(mut call: Call) -> Result<(), Status> {
    let mut requests = Vec::new();
    let mut definition = None;
    while let Some(bytes) = call.receive_bytes().await {
        let request: ClientStreamRequest = decode(&bytes)?;
        if requests.is_empty() {
            definition = request.response_definition;
        }
        requests.push(kept(&call, "ClientStreamRequest", bytes));
    }
    let payload = answered(&mut call, definition, requests).await?;
    call.send(&ClientStreamResponse { payload }).await;
    Ok(())
}

pub(super) async fn server_stream(mut call: Call) -> Result<(), Status> {
    let bytes = call.receive_only_bytes().await?;
    let request: ServerStreamRequest = decode(&bytes)?;
    let Some(definition) = request.response_definition else { return Ok(()) };
    let StreamResponseDefinition { response_headers, response_trailers, .. } = definition;
    add(&call, response_headers, response_trailers);
    keep_parts(&call, definition.response_data.len(), definition.error.as_ref());
    let mut request_info = Some(info(&call, vec![kept(&call, "ServerStreamRequest", bytes)]));
    call.send_headers().await;
    for data in definition.response_data {
        call.sleep(delay(definition.response_delay_ms)).await;
        let payload = Some(ConformancePayload { data, request_info: request_info.take() });
        call.send(&ServerStreamResponse { payload }).await;
    }
    definition.error.map_or(Ok(()), |wanted| Err(error(wanted, request_info)))
}

pub(super) async fn bidi(mut call: Call) -> Result<(), Status> {
    let mut requests = Vec::new();
    let (mut definition, mut is_first, mut is_full) = (None, true, false);
    let (mut sent, mut data) = (0, Vec::new().into_iter());
    // Requests until an answer names them, as copies.
    let mut held = call.hold(0);
    while let Some(bytes) = call.receive_bytes().await {
        let BidiStreamRequest { response_definition, full_duplex, .. } = decode(&bytes)?;
        held.add(bytes.len() + KEPT_BYTES);
        requests.push(any("BidiStreamRequest", bytes));
        if std::mem::take(&mut is_first) {
            is_full = full_duplex;
            if let Some(mut first) = response_definition {
                let before = std::mem::take(&mut first.response_headers);
                add(&call, before, std::mem::take(&mut first.response_trailers));
                keep_parts(&call, first.response_data.len(), first.error.as_ref());
                data = std::mem::take(&mut first.response_data).into_iter();
                definition = Some(first);
                if is_full {
                    call.send_headers().await;
                }
            }
        }
        if is_full {
            let (Some(definition), Some(data)) = (&definition, data.next()) else { break };
            let requests = std::mem::take(&mut requests);
            let info = match sent {
                0 => info(&call, requests),
                _ => RequestInfo { requests, ..RequestInfo::default() },
            };
            call.sleep(delay(definition.response_delay_ms)).await;
            let payload = Some(ConformancePayload { data, request_info: Some(info) });
            call.send(&BidiStreamResponse { payload }).await;
            held.set(0);
            sent += 1;
        }
    }
    let Some(definition) = definition else { return Ok(()) };
    for data in data {
        let request_info = (sent == 0).then(|| info(&call, std::mem::take(&mut requests)));
        call.sleep(delay(definition.response_delay_ms)).await;
        let payload = Some(ConformancePayload { data, request_info });
        call.send(&BidiStreamResponse { payload }).await;
        held.set(0);
        sent += 1;
    }
    let unsaid = (sent == 0).then(|| info(&call, requests));
    definition.error.map_or(Ok(()), |wanted| Err(error(wanted, unsaid)))
}
