//! Little questions, answered before a request is taken apart in full: what a time shows, slices,
//! and NoPayloadDB's question of every job. What is no little question, or is refused, goes on to
//! its handler. Control plane.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use service::{Question, Quick, Quickly};

use super::app::App;
use super::{reads, slices};
use crate::nopayload::server::quick as nopayload;
use crate::protocol::BASE;

/// A server's little questions.
pub(super) struct Little(pub(super) Arc<App>);

impl Quick for Little {
    fn answer(&self, question: &Question<'_>) -> Quickly {
        let app = &self.0;
        let Some(state) = app.state.try_read() else {
            let app = Arc::clone(app);
            return Quickly::Wait(Box::pin(async move { drop(app.state.free().await) }));
        };
        let answer = match question.path.strip_prefix(BASE) {
            Some("/find") => reads::quick(app, state, question),
            Some("/slice") => slices::quick(app, state, question),
            Some(path) => match path.strip_prefix("/slice/") {
                Some(place) => slices::quick_place(app, state, place, question),
                None => None,
            },
            None => nopayload(app, &state, question),
        };
        answer.map_or(Quickly::Other, Quickly::Answer)
    }
}

/// An answer of bytes.
pub(crate) fn answer(
    status: StatusCode,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    body: Bytes,
) -> Response<Bytes> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().extend(headers);
    answer
}

/// What `If-None-Match` lists.
pub(crate) fn lists<'a>(question: &'a Question<'_>) -> impl Iterator<Item = &'a str> {
    question.values("if-none-match")
}
