//! What is refused, as status and JSON: `ecflow_http`'s members, and what to do about it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A refusal.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    message: String,
    fix: &'static str,
}

/// What a refusal of the tree's owner says, and its status; the first that fits counts.
const OF_OWNER: [(&str, StatusCode); 8] = [
    ("already exist", StatusCode::CONFLICT),
    ("already a", StatusCode::CONFLICT),
    ("nothing is changed", StatusCode::INSUFFICIENT_STORAGE),
    ("could not find", StatusCode::NOT_FOUND),
    ("cannot find", StatusCode::NOT_FOUND),
    ("no such file", StatusCode::NOT_FOUND),
    ("not found", StatusCode::NOT_FOUND),
    ("cannot be found", StatusCode::NOT_FOUND),
];

impl Fault {
    pub(super) fn new(status: StatusCode, message: impl Into<String>, fix: &'static str) -> Self {
        Self { status, message: message.into(), fix }
    }

    /// A request that can't be read.
    pub(super) fn bad(message: impl Into<String>, fix: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message, fix)
    }

    /// There is no such node.
    pub(super) fn no_node(path: &str) -> Self {
        let message = format!("Path {path} not found");
        Self::new(StatusCode::NOT_FOUND, message, "GET /v1/suites/tree shows all")
    }

    /// What the owner of the tree refuses, in its words.
    pub(super) fn of_owner(why: &str) -> Self {
        let small = why.to_lowercase();
        let known = OF_OWNER.iter().find(|(words, _)| small.contains(words));
        let status = known.map_or(StatusCode::BAD_REQUEST, |(_, status)| *status);
        Self::new(status, why.trim_end(), "correct the request, and send it again")
    }

    /// Too much at once.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message, "ask again later, or for less")
    }

    /// The server stops.
    pub(super) fn stopping() -> Self {
        let message = "the server is stopping";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message, "ask again when it is back")
    }

    /// Changes are not taken from this client.
    pub(super) fn unauthorized() -> Self {
        let fix = "send Authorization: Bearer TOKEN, or X-API-Key: TOKEN, of the server's \
                   --token-file";
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", fix)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self { status, message, fix } = self;
        let body = json!({ "code": status.as_u16(), "message": message, "fix": fix });
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let mut answer = (status, kind, body.to_string()).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        answer
    }
}
