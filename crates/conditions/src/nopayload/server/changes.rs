//! Changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::json;

use super::answer::{JSON, Refusal, bytes_of, json_of, read};
use super::questions::{Asked, Parts};
use crate::model::Change as ServiceChange;
use crate::nopayload::model::{Change, Interval, Moment, Nopayload, Revision};
use crate::nopayload::protocol::{
    Fields, IovView, ListView, StatusView, TagListed, TagView, TypeView, bulk,
};
use crate::protocol::MAX_BODY_BYTES;
use crate::server::app::{App, beside};
use crate::server::receive::receive;

/// A change that was made.
pub(super) struct Done {
    revision: Revision,
    /// The payload of what it deleted.
    url: Option<Arc<str>>,
}

/// What a change is answered once it is made; `None` where another one has taken it back since.
type Made = Box<dyn FnOnce(&Nopayload, &Done) -> Option<Vec<u8>> + Send>;

/// A request for a change: what it means, and how it is answered.
type Meant = Result<(Change, Made), Refusal>;

/// A row of the table of changes.
type Row = fn(&Asked, &[u8]) -> Meant;

pub(super) fn post(meant: Row) -> MethodRouter<Arc<App>> {
    change(MethodFilter::POST, meant)
}

pub(super) fn put(meant: Row) -> MethodRouter<Arc<App>> {
    change(MethodFilter::PUT, meant)
}

pub(super) fn delete(meant: Row) -> MethodRouter<Arc<App>> {
    change(MethodFilter::DELETE, meant)
}

fn change(method: MethodFilter, meant: Row) -> MethodRouter<Arc<App>> {
    on(method, async move |Extract(app): Extract<Arc<App>>, path: Parts, request: Request| {
        let made = try_make(&app, path, request, meant).await;
        let count = if made.is_ok() { &app.counts.changes } else { &app.counts.refused };
        count.fetch_add(1, Relaxed);
        made
    })
}

async fn try_make(
    app: &Arc<App>,
    path: Parts,
    request: Request,
    meant: Row,
) -> Result<Response, Refusal> {
    let asked = Asked::of(path, request.uri())?;
    let length = length(request.headers())?;
    // Memory is taken for what all clients send together, and free again once the change is made.
    let (body, mut room) = receive(&app.bodies, request.into_body(), length).await?;
    let read_body = move || {
        let (change, made) = meant(&asked, &body)?;
        let deleted = matches!(change, Change::DeleteIov { .. }).then(|| change.clone());
        let change = ServiceChange::Nopayload(change);
        let bytes = change.encode();
        Ok::<_, Refusal>((change, bytes, deleted, made))
    };
    let (change, bytes, deleted, made) = if length <= SHORT_BODY {
        read_body()?
    } else {
        beside(read_body).await.ok_or_else(Refusal::own)??
    };
    let url = match deleted {
        Some(deleted) => read(app, |_| true, move |state| url(state, &deleted)).await?,
        None => None,
    };
    room.grow(bytes.len())?;
    let revision = app.writer.make(change, bytes, room.permit()).await?;
    let done = Done { revision, url };
    let answer = read(app, |_| true, move |state| made(state, &done)).await?;
    let taken_back = "it was made, and another request has deleted it since";
    let gone = || Refusal::detail(StatusCode::NOT_FOUND, taken_back);
    json_of(app, answer.ok_or_else(gone)?)
}

/// The payload of an interval that is deleted.
fn url(state: &Nopayload, change: &Change) -> Option<Arc<str>> {
    let Change::DeleteIov { tag, payload_type, interval } = change else { return None };
    let (id, _) = state.find(tag, payload_type, *interval)?;
    Some(state.iov(id)?.url.clone())
}

/// Bodies that are read on the thread of connections.
const SHORT_BODY: usize = 16 << 10;

/// The length of a body: of JSON, stated, or 0.
fn length(headers: &HeaderMap) -> Result<usize, Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let length = match text(header::CONTENT_LENGTH) {
        Some(length) => length.parse().ok(),
        None if headers.contains_key(header::TRANSFER_ENCODING) => None,
        None => Some(0),
    };
    let length = length.ok_or_else(|| {
        let detail = "the length of the body is not stated: send Content-Length";
        Refusal::detail(StatusCode::LENGTH_REQUIRED, detail)
    })?;
    let kind = text(header::CONTENT_TYPE).unwrap_or("");
    if length > 0 && kind.split(';').next().map(str::trim) != Some(JSON) {
        let detail = format!("Unsupported media type {kind:?} in request.");
        return Err(Refusal::detail(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    if length > MAX_BODY_BYTES {
        let detail = format!("a body of {length} bytes: {MAX_BODY_BYTES} bytes are the most");
        return Err(Refusal::detail(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(length)
}

/// A change of this name, which an answer then finds.
fn named(
    name: String,
    change: fn(String) -> Change,
    made: fn(&Nopayload, &str) -> Option<Vec<u8>>,
) -> Meant {
    let made_of = name.clone();
    Ok((change(name), Box::new(move |state, _| made(state, &made_of))))
}

pub(super) fn create_status(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let name = fields.text("name");
    named(fields.done(name)?, Change::CreateStatus, |state, name| {
        Some(bytes_of(&StatusView::of(state.status_named(name)?)))
    })
}

pub(super) fn create_type(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let name = fields.text("name");
    named(fields.done(name)?, Change::CreateType, |state, name| {
        Some(bytes_of(&TypeView::of(state.type_named(name)?)))
    })
}

pub(super) fn create_tag(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let (name, author) = (fields.text("name"), fields.optional_text("author"));
    let status = fields.text("status");
    let made_of = name.clone();
    let made: Made = Box::new(move |state, _| {
        let row = state.tag_named(&made_of)?;
        Some(bytes_of(&TagView::of(row, state.status_of(row.1))))
    });
    Ok((fields.done(Change::CreateTag { name, author, status })?, made))
}

pub(super) fn set_status(asked: &Asked, _: &[u8]) -> Meant {
    let (tag, status) = (asked.part(0).to_owned(), asked.part(1).to_owned());
    let made_of = tag.clone();
    let made: Made = Box::new(move |state, _| {
        let row = state.tag_named(&made_of)?;
        Some(bytes_of(&TagView::of(row, row.1.status)))
    });
    Ok((Change::SetStatus { tag, status }, made))
}

pub(super) fn clone_tag(asked: &Asked, _: &[u8]) -> Meant {
    let (from, to) = (asked.part(0).to_owned(), asked.part(1).to_owned());
    let made_of = to.clone();
    let made: Made =
        Box::new(move |state, _| Some(bytes_of(&TagListed::of(state, state.tag_named(&made_of)?))));
    Ok((Change::CloneTag { from, to }, made))
}

/// An answer that says that something is gone.
fn deleted(what: &str, name: &str) -> Option<Vec<u8>> {
    Some(bytes_of(&json!({ "detail": format!("{what} {name} deleted.") })))
}

pub(super) fn delete_tag(asked: &Asked, _: &[u8]) -> Meant {
    named(asked.part(0).to_owned(), Change::DeleteTag, |_, name| deleted("Global tag", name))
}

pub(super) fn delete_type(asked: &Asked, _: &[u8]) -> Meant {
    named(asked.part(0).to_owned(), Change::DeleteType, |_, name| deleted("Payload Type", name))
}

pub(super) fn delete_list(asked: &Asked, _: &[u8]) -> Meant {
    named(asked.part(0).to_owned(), Change::DeleteList, |_, name| deleted("Payload List", name))
}

pub(super) fn create_list(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let payload_type = fields.text("payload_type");
    let made: Made = Box::new(|state, done| {
        Some(bytes_of(&ListView::named(state, state.list_made(done.revision)?)))
    });
    Ok((Change::CreateList(fields.done(payload_type)?), made))
}

pub(super) fn attach_list(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let (list, tag) = (fields.text("payload_list"), fields.text("global_tag"));
    let made_of = list.clone();
    let made: Made = Box::new(move |state, _| {
        Some(bytes_of(&ListView::named(state, state.list_named(&made_of)?)))
    });
    Ok((fields.done(Change::AttachList { list, tag })?, made))
}

pub(super) fn create_iov(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let (url, checksum) = (fields.text("payload_url"), fields.text("checksum"));
    let interval = fields.interval();
    let made: Made =
        Box::new(|state, done| Some(bytes_of(&IovView::of(state, state.iov_made(done.revision)?))));
    Ok((fields.done(Change::CreateIov { url, checksum, interval })?, made))
}

pub(super) fn attach_iov(_: &Asked, body: &[u8]) -> Meant {
    let mut fields = Fields::read(body)?;
    let (list, number) = (fields.text("payload_list"), fields.number("piov_id"));
    // A number past all that are given is that of none.
    let iov = u32::try_from(number).unwrap_or(u32::MAX);
    let made: Made =
        Box::new(move |state, _| Some(bytes_of(&IovView::of(state, (iov, state.iov(iov)?)))));
    Ok((fields.done(Change::AttachIov { list, iov })?, made))
}

pub(super) fn add_iovs(_: &Asked, body: &[u8]) -> Meant {
    // The reference answers nothing here.
    Ok((Change::AddIovs(bulk(body)?), Box::new(|_, _| Some(Vec::new()))))
}

pub(super) fn delete_iov(asked: &Asked, _: &[u8]) -> Meant {
    let (tag, payload_type) = (asked.part(0).to_owned(), asked.part(1).to_owned());
    let moment = |at| Ok::<_, Refusal>(Moment::of(asked.number(at)?, asked.number(at + 1)?));
    let end = if asked.parts() > 4 { moment(4)? } else { Moment::OPEN };
    let interval = Interval { start: moment(2)?, end };
    let made: Made = Box::new(|_, done| deleted("PayloadIOV", done.url.as_deref().unwrap_or("")));
    Ok((Change::DeleteIov { tag, payload_type, interval }, made))
}
