//! What the head of a request has to be before its function is called.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http_types::request::Parts;
use http_types::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::super::shared::{HEALTH, Shared};
use super::super::work::here;
use crate::model::call::{Here, Info};
use crate::model::function::{Function, Run};
use crate::protocol::compression::{ACCEPTED, Encoding};
use crate::protocol::metadata::{Metadata, from_base64, is_binary};
use crate::protocol::status::{Code, Status};
use crate::protocol::timeout;

/// What RFC 9113 (10.5.1) adds to each name and value.
const FIELD_BYTES: usize = 32;

/// A call whose head is right.
pub(super) struct Admitted {
    pub(super) function: Arc<Function>,
    pub(super) info: Info,
    /// How its messages are compressed.
    pub(super) encoding: Option<Encoding>,
    /// How those of the answer may be; the first that the client names, if it isn't the same.
    pub(super) accepted: Option<Encoding>,
    pub(super) content_type: HeaderValue,
}

/// Why a call is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The status of HTTP; 200 unless the request is none of gRPC.
    pub(super) http: StatusCode,
    pub(super) status: Status,
    /// Whether the refusal names the compressions that are known.
    pub(super) names_encodings: bool,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { http: StatusCode::OK, status, names_encodings: false }
    }
}

impl Refusal {
    fn of_http(http: StatusCode, code: Code, words: String) -> Self {
        Self { http, status: Status::new(code, words), names_encodings: false }
    }
}

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_PROTO: HeaderValue = HeaderValue::from_static("application/grpc+proto");

/// The type of the answer to a request of this type.
fn answer_type(asked: Option<&HeaderValue>) -> Option<HeaderValue> {
    let asked = asked?.as_bytes();
    let bare = asked.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match bare {
        b"application/grpc" => Some(GRPC),
        b"application/grpc+proto" => Some(GRPC_PROTO),
        _ => None,
    }
}

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Checks the head of a request.
pub(super) fn admit(
    head: &Parts,
    shared: &Shared,
    carrier: &'static str,
) -> Result<Admitted, Refusal> {
    let headers = &head.headers;
    if head.method != Method::POST {
        let words = format!("a call is a POST request, not {}", head.method);
        return Err(Refusal::of_http(StatusCode::METHOD_NOT_ALLOWED, Code::Internal, words));
    }
    let Some(content_type) = answer_type(headers.get(header::CONTENT_TYPE)) else {
        let words = "the content-type of a call is application/grpc or application/grpc+proto";
        let (http, code) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument);
        return Err(Refusal::of_http(http, code, words.to_owned()));
    };
    check_metadata(headers, shared.settings.max_metadata_bytes as usize)?;
    let path = head.uri.path();
    check_token(headers, shared, path)?;
    let Some(function) = shared.functions.get(path) else {
        return Err(unknown(path, shared).into());
    };
    let timeout = headers.get(TIMEOUT).map(read_timeout).transpose()?;
    let named = headers.get(ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    let Some(encoding) = Encoding::of(named) else {
        let named = String::from_utf8_lossy(named);
        let words = format!("the grpc-encoding \"{named}\" is not known here, but {ACCEPTED} are");
        let status = Status::new(Code::Unimplemented, words);
        return Err(Refusal { http: StatusCode::OK, status, names_encodings: true });
    };
    let accepted = accepted(headers, encoding);
    let metadata = match function.run {
        Run::AtOnce(_) => Metadata::default(),
        Run::InSteps(_) => metadata(headers),
    };
    let is_stopping = shared.is_stopping();
    let (pid, here) = (shared.pid, here as fn() -> Here);
    let calls = shared.counters.calls.load(Relaxed);
    let info = Info { pid, here, calls, carrier, metadata, timeout, is_stopping };
    let function = Arc::clone(function);
    Ok(Admitted { function, info, encoding, accepted, content_type })
}

/// Checks the size of all fields, and the base64 of those that have it.
fn check_metadata(headers: &HeaderMap, most_bytes: usize) -> Result<(), Status> {
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len() + FIELD_BYTES;
        if is_binary(name.as_str()) && from_base64(value.as_bytes()).is_none() {
            let words = format!("the value of {name} is no base64");
            return Err(Status::new(Code::Internal, words));
        }
    }
    if bytes > most_bytes {
        let words = format!(
            "metadata of {bytes} bytes are over the limit, {most_bytes}: send less, or start the \
             server with a larger --max-metadata"
        );
        return Err(Status::new(Code::ResourceExhausted, words));
    }
    Ok(())
}

/// A call needs one of the tokens, where there are tokens (RFC 6750, 2.1).
fn check_token(headers: &HeaderMap, shared: &Shared, path: &str) -> Result<(), Status> {
    let Some(tokens) = &shared.settings.tokens else { return Ok(()) };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let carries_one = match (values.next(), values.next()) {
        (Some(value), None) => {
            value.as_bytes().split_at_checked(7).is_some_and(|(scheme, token)| {
                scheme.eq_ignore_ascii_case(b"bearer ") && tokens.has(token.trim_ascii())
            })
        }
        _ => false,
    };
    if carries_one || path.starts_with(HEALTH) {
        return Ok(());
    }
    let words = "a token is needed: send the metadata authorization: Bearer TOKEN";
    Err(Status::new(Code::Unauthenticated, words))
}

/// Names what is missing: the service, or its method.
fn unknown(path: &str, shared: &Shared) -> Status {
    let words = match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
        Some((service, method)) => {
            let prefix = format!("/{service}/");
            let is_known = shared.functions.keys().any(|path| path.starts_with(&prefix));
            match is_known {
                true => format!("unknown method {method} for service {service}"),
                false => format!("unknown service {service}"),
            }
        }
        None => format!("the path {path} is not /package.Service/Method"),
    };
    Status::new(Code::Unimplemented, words)
}

fn read_timeout(value: &HeaderValue) -> Result<Duration, Status> {
    timeout::parse(value.as_bytes()).ok_or_else(|| {
        let written = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let words = format!(
            "the grpc-timeout \"{written}\" is not at most eight digits and H, M, S, m, u or n"
        );
        Status::new(Code::Internal, words)
    })
}

/// The compression of the answer: that of the request where the client takes it, or the first of
/// those that it takes.
fn accepted(headers: &HeaderMap, asked: Option<Encoding>) -> Option<Encoding> {
    let list = headers.get(ACCEPT_ENCODING)?.as_bytes();
    let same = asked.filter(|asked| Encoding::all_of(list).any(|one| one == *asked));
    same.or_else(|| Encoding::all_of(list).next())
}

/// The metadata of an application: all but what is HTTP's and gRPC's own.
fn metadata(headers: &HeaderMap) -> Metadata {
    let mut metadata = Metadata::default();
    for (name, value) in headers {
        let name = name.as_str();
        if name == "te" || name.starts_with("grpc-") {
            continue;
        }
        if is_binary(name) {
            // It is base64, or the call would have been refused.
            let values = from_base64(value.as_bytes()).unwrap_or_default();
            values.into_iter().for_each(|value| metadata.add(name, value));
        } else {
            metadata.add(name, value.as_bytes().to_vec());
        }
    }
    metadata
}
