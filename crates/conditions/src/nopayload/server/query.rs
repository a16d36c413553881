//! The question of every job: what a tag's lists show at a moment.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Extract};
use axum::http::{self, HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use service::Question;

use super::answer::{JSON, Refusal, hold, read};
use super::questions::Asked;
use crate::model::State;
use crate::nopayload::model::Nopayload;
use crate::nopayload::protocol::{BASE, Pairs, Query, write_rows};
use crate::server::app::App;
use crate::server::known::{is_known, lists, value};
use crate::server::quick;

/// Tags whose answers are made on the thread of connections: it is quicker than to pass them on.
const SHORT_LISTS: usize = 1_000;

/// Its handler.
pub(super) async fn query(
    Extract(app): Extract<Arc<App>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    app.counts.reads.fetch_add(1, Relaxed);
    let asked = Query::read(&Asked::of(Ok(Path(Vec::new())), &uri)?.pairs).map_err(Refusal::bad)?;
    let tag = asked.tag.clone();
    let is_short = move |state: &Nopayload| is_short(state, &tag);
    let found = read(&app, is_short, move |state| found(state, &asked, lists(&headers))).await?;
    Ok(answered(&app, found)?.map(Body::from))
}

/// Whether little is shown: then the answer is made on the thread of connections.
fn is_short(state: &Nopayload, tag: &str) -> bool {
    state.tag_named(tag).is_none_or(|(_, tag)| tag.lists.len() <= SHORT_LISTS)
}

/// The paths of the question of every job.
const QUERY_PATHS: [&str; 4] =
    ["/payload-iovs/query/", "/payloadiovs/", "/payload-iovs/query", "/payloadiovs"];

/// The answer to it, where it is a little one.
pub(crate) fn quick(
    app: &App,
    state: &State,
    asked: &Question<'_>,
) -> Option<http::Response<Bytes>> {
    let path = asked.path.strip_prefix(BASE)?;
    if !QUERY_PATHS.contains(&path) {
        return None;
    }
    let pairs = form_urlencoded::parse(asked.query.as_bytes()).into_owned().collect();
    let (query, state) = (Query::read(&Pairs(pairs)).ok()?, state.nopayload());
    if !is_short(state, &query.tag) {
        return None;
    }
    let answer = answered(app, found(state, &query, quick::lists(asked))).ok()?;
    app.counts.reads.fetch_add(1, Relaxed);
    Some(answer)
}

/// What is found: its entity tag, and the bytes where the client hasn't them.
type Found = (Option<String>, Option<Vec<u8>>);

fn answered(app: &App, (tag, bytes): Found) -> Result<http::Response<Bytes>, Refusal> {
    let kept = tag.map(|tag| {
        let now = HeaderValue::from_static("no-cache");
        [(header::ETAG, value(tag)), (header::CACHE_CONTROL, now)]
    });
    let kept = kept.into_iter().flatten();
    let Some(bytes) = bytes else {
        app.counts.not_modified.fetch_add(1, Relaxed);
        return Ok(quick::answer(StatusCode::NOT_MODIFIED, kept, Bytes::new()));
    };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    Ok(quick::answer(StatusCode::OK, kept.chain([kind]), hold(app, bytes)?))
}

/// The answer with its entity tag; no bytes where the client has them.
fn found<'a>(state: &Nopayload, asked: &Query, lists: impl Iterator<Item = &'a str>) -> Found {
    let Some((_, tag)) = state.tag_named(&asked.tag) else { return (None, Some(b"[]".to_vec())) };
    // An answer is another one only once the tag shows something else.
    let entity = format!("\"{:x}-{:x}\"", tag.made_us, tag.changed);
    if is_known(lists, &entity) {
        return (Some(entity), None);
    }
    let mut out = Vec::with_capacity(64 + 192 * tag.lists.len());
    let rows = asked.at.into_iter().flat_map(|at| state.latest(tag, at).map(move |row| (at, row)));
    let shown = rows.filter(|(at, (_, iov))| !asked.is_strict || iov.interval.end > *at);
    write_rows(shown.map(|(_, row)| row), asked.shape, &mut out);
    (Some(entity), Some(out))
}
