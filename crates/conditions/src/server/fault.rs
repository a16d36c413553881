//! What is refused, as status and JSON: the one table of it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::store::WriteError;
use crate::model::Refusal;
use crate::protocol::ErrorBody;

/// A refusal, as it is answered.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    pub(super) body: ErrorBody,
}

impl Fault {
    pub(super) fn new(status: StatusCode, error: impl ToString, fix: &str) -> Self {
        Self { status, body: ErrorBody { error: error.to_string(), fix: fix.to_owned() } }
    }

    /// A request that can't be read.
    pub(super) fn bad(error: impl ToString, fix: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, fix)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        json(self.status, &self.body)
    }
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Maps with keys that aren't text are all that is refused, and there are none.
    let text = serde_json::to_vec(body).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        use StatusCode as S;
        let (status, fix) = match &refusal {
            Refusal::NoFolder(_) => (S::NOT_FOUND, "GET /api/v1/folders lists all folders"),
            Refusal::NoTag(_) => (S::NOT_FOUND, "GET /api/v1/tags lists all tags"),
            Refusal::NoColumn(..) => (S::NOT_FOUND, "GET /api/v1/folders lists all columns"),
            Refusal::NoChannel(..) => {
                (S::NOT_FOUND, "GET /api/v1/channels?folder=PATH lists all channels")
            }
            Refusal::NoRevision(..) => (S::NOT_FOUND, "ask for a revision that is there"),
            Refusal::Exists(..) => (S::CONFLICT, "choose another name"),
            Refusal::Overlap { .. } => (
                S::CONFLICT,
                "nothing was inserted; end the object where the other one starts, or use a folder \
                 of several versions",
            ),
            Refusal::Locked(_) => (S::CONFLICT, "unlock the tag, or clone it"),
            Refusal::OneVersion(_) => (S::CONFLICT, "tag what the head shows"),
            Refusal::OtherTag(..) => (S::CONFLICT, "GET /api/v1/tags says what each tag is of"),
            Refusal::BadName(..) => (
                S::BAD_REQUEST,
                "names have 1 to 255 bytes, no slash, no control character, no space at an end; a \
                 folder is named as /set/folder",
            ),
            Refusal::BadInterval(..) => (S::BAD_REQUEST, "leave until out for an open interval"),
            Refusal::BadPayload(_) => (S::CONFLICT, "its columns have changed: send it again"),
            Refusal::TooMany(..) => (S::PAYLOAD_TOO_LARGE, "ask for less, or insert it in parts"),
        };
        Self::new(status, &refusal, fix)
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::TooLarge(_) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, error, "insert it in parts")
            }
            WriteError::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error, "send it again later")
            }
            WriteError::Disk(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error,
                "see to the disk, then start the service again; reads go on",
            ),
        }
    }
}
