//! Answers and refusals in JSON: `{"detail": …}`, or what is wrong with each field.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Refusal as ModelRefusal, State};
use crate::nopayload::model::{Nopayload, Refused};
use crate::nopayload::protocol::{BadBody, TooManyRows};
use crate::server::app::App;
use crate::server::fault::Fault;
use crate::server::size::Size;
use crate::server::write_error::WriteError;

/// A refusal, as it is answered.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    body: Value,
}

impl Refusal {
    pub(super) fn detail(status: StatusCode, detail: impl ToString) -> Self {
        Self { status, body: json!({ "detail": detail.to_string() }) }
    }

    /// What names nothing in a request's path.
    pub(super) fn not_found() -> Self {
        Self::detail(StatusCode::NOT_FOUND, "Not found.")
    }

    pub(super) fn bad(detail: impl ToString) -> Self {
        Self::detail(StatusCode::BAD_REQUEST, detail)
    }

    /// An error of the service itself.
    pub(super) fn own() -> Self {
        let detail = "the service made an error: look into its log, and report it";
        Self::detail(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = self.body.to_string();
        (self.status, [(header::CONTENT_TYPE, JSON)], text).into_response()
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        use StatusCode as S;
        let status = match &refused {
            Refused::Field(field, why) => {
                return Self { status: S::BAD_REQUEST, body: json!({ *field: [why] }) };
            }
            Refused::Missing(..) | Refused::NoIov => S::NOT_FOUND,
            Refused::BadInterval { .. } => S::BAD_REQUEST,
            Refused::Closed(_)
            | Refused::HasType(_)
            | Refused::Met { .. }
            | Refused::TypeIsUsed(_)
            | Refused::ListIsUsed(_)
            | Refused::OtherFile(_) => S::CONFLICT,
            Refused::TooMany(..) => S::PAYLOAD_TOO_LARGE,
        };
        Self::detail(status, refused)
    }
}

impl From<Fault> for Refusal {
    fn from(Fault { status, body, .. }: Fault) -> Self {
        Self::detail(status, format!("{}: {}", body.error, body.fix))
    }
}

impl From<BadBody> for Refusal {
    fn from(bad: BadBody) -> Self {
        match bad {
            BadBody::Whole(why) => Self::bad(why),
            BadBody::Fields(wrong) => Self { status: StatusCode::BAD_REQUEST, body: json!(wrong) },
        }
    }
}

impl From<TooManyRows> for Refusal {
    fn from(rows: TooManyRows) -> Self {
        Self::detail(StatusCode::PAYLOAD_TOO_LARGE, rows)
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(ModelRefusal::Nopayload(refused)) => refused.into(),
            WriteError::Refused(other) => Self::detail(StatusCode::CONFLICT, other),
            WriteError::TooLarge(_) => {
                let detail = format!("{error}; send it in parts");
                Self::detail(StatusCode::PAYLOAD_TOO_LARGE, detail)
            }
            WriteError::Busy
            | WriteError::Disk(_)
            | WriteError::Unsealed(_)
            | WriteError::Shared(_)
            | WriteError::Unknown(_) => Self::detail(StatusCode::SERVICE_UNAVAILABLE, error),
        }
    }
}

/// The bytes of an answer.
pub(super) fn bytes_of(answer: &impl Serialize) -> Vec<u8> {
    // Maps with keys that aren't text are all that is refused, and there are none.
    serde_json::to_vec(answer).unwrap_or_default()
}

/// Reads the state: on the thread of connections where that `is_short`, else beside it.
pub(super) async fn read<T: Send + 'static>(
    app: &Arc<App>,
    is_short: impl FnOnce(&Nopayload) -> bool,
    work: impl FnOnce(&Nopayload) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let is_little = |_: &App, state: &State, (): &()| is_short(state.nopayload());
    let size = |_: &App, _: &State, (): &()| Size::Medium;
    let read = app.read((), is_little, size, move |_, state, ()| work(state.nopayload()));
    read.await.map_err(|_| Refusal::own())
}

/// An answer in JSON.
pub(super) fn json_of(app: &App, bytes: Vec<u8>) -> Result<Response, Refusal> {
    Ok(([(header::CONTENT_TYPE, JSON)], hold(app, bytes)?).into_response())
}

/// The bytes of an answer, where there is room for them until they are sent.
pub(super) fn hold(app: &App, bytes: Vec<u8>) -> Result<Bytes, Refusal> {
    app.unsent.hold(bytes).map_err(|_| {
        let detail = "the answers that are being sent are too large together: ask again later";
        Refusal::detail(StatusCode::SERVICE_UNAVAILABLE, detail)
    })
}

/// The type of what is asked and answered.
pub(super) const JSON: &str = "application/json";
