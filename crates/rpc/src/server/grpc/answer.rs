//! The heads and trailers of answers.

use bytes::Bytes;
use h2::server::SendResponse;
use http_types::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::admit::{GRPC, Refusal};
use crate::protocol::compression::{ACCEPTED, Encoding};
use crate::protocol::metadata::{Metadata, is_binary, is_name, to_base64};
use crate::protocol::percent;
use crate::protocol::status::{Code, Status};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The most bytes of a text or of details that are sent: a client takes 8 KiB of metadata at least.
const MOST_TEXT_BYTES: usize = 2 << 10;
const MOST_DETAILS_BYTES: usize = 16 << 10;

/// What comes before the first message.
pub(super) fn head(
    content_type: &HeaderValue,
    encoding: Option<Encoding>,
    metadata: &Metadata,
) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type.clone());
    if let Some(encoding) = encoding {
        headers.insert(ENCODING, HeaderValue::from_static(encoding.name()));
    }
    add(headers, metadata);
    response
}

/// What comes behind the last message.
pub(super) fn trailers(status: &Status, metadata: &Metadata) -> HeaderMap {
    let mut headers = HeaderMap::new();
    add_status(&mut headers, status);
    add(&mut headers, metadata);
    headers
}

/// An answer without messages.
pub(super) fn only_trailers(
    content_type: &HeaderValue,
    status: &Status,
    metadata: &Metadata,
) -> Response<()> {
    let mut response = head(content_type, None, metadata);
    add_status(response.headers_mut(), status);
    response
}

/// Refuses a request whose head is wrong.
pub(super) fn refuse(mut respond: SendResponse<Bytes>, refusal: &Refusal) {
    let mut response = only_trailers(&GRPC, &refusal.status, &Metadata::default());
    *response.status_mut() = refusal.http;
    if refusal.names_encodings {
        response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    }
    if refusal.http == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    // A stream that is reset meanwhile needs no answer.
    let _ = respond.send_response(response, true);
}

fn add_status(headers: &mut HeaderMap, status: &Status) {
    let code = match status.code {
        Code::Ok => HeaderValue::from_static("0"),
        code => HeaderValue::from(code as i32),
    };
    headers.insert(STATUS, code);
    if !status.message.is_empty() {
        let text = percent::encode(cut(&status.message));
        if let Ok(text) = HeaderValue::from_str(&text) {
            headers.insert(MESSAGE, text);
        }
    }
    let has_details = (1..=MOST_DETAILS_BYTES).contains(&status.details.len());
    if has_details && let Ok(details) = HeaderValue::from_str(&to_base64(&status.details)) {
        headers.insert(DETAILS, details);
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT_BYTES)]
}

/// Adds what can be metadata; a function's mistake is no reason to lose its answer.
fn add(headers: &mut HeaderMap, metadata: &Metadata) {
    for (name, value) in metadata.iter() {
        let known = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| is_name(name));
        let sent = match is_binary(name) {
            true => HeaderValue::from_str(&to_base64(value)),
            false => HeaderValue::from_bytes(value),
        };
        match (known, sent) {
            (Some(name), Ok(value)) if name != header::CONTENT_TYPE => {
                headers.append(name, value);
            }
            _ => tracing::warn!("the metadata {name} can't be sent: its name or value is wrong"),
        }
    }
}
