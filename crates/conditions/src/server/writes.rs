//! Changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::to_bytes;
use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use serde::de::DeserializeOwned;

use super::app::App;
use super::fault::{Fault, json};
use crate::model::{Change, Numbers};
use crate::protocol::{
    ChannelBody, CloneBody, ColumnBody, DeleteBody, FolderBody, InsertBody, LockBody,
    MAX_BODY_BYTES, MadeBody, RenameBody, SetBody, TagBody, TruncateBody, numbers, time_us,
};

/// The handler of a change that is asked for with this body.
pub(super) fn change<B: DeserializeOwned + 'static>(
    meant: fn(&App, B) -> Result<Change, Fault>,
) -> MethodRouter<Arc<App>> {
    post(async move |Extract(app): Extract<Arc<App>>, request: Request| {
        let made = make(&app, request, meant).await;
        app.answered(made)
    })
}

async fn make<B: DeserializeOwned + 'static>(
    app: &Arc<App>,
    request: Request,
    meant: fn(&App, B) -> Result<Change, Fault>,
) -> Result<Response, Fault> {
    let length = length(request.headers())?;
    // Memory is taken for what all clients send together, and free again once it is answered.
    let room = app.bodies.try_acquire_many(length.div_ceil(1024) as u32);
    let _room = room.map_err(|_| {
        let error = "the requests that are being received are too large together";
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, error, "send it again later")
    })?;
    let body = to_bytes(request.into_body(), length).await;
    let body = body.map_err(|_| Fault::bad("the body can't be read", "send all of it"))?;
    let read = move |app: &App| {
        let body: B = serde_json::from_slice(&body).map_err(|error| {
            Fault::bad(format!("the body: {error}"), "docs/conditions.md lists the fields")
        })?;
        let change = meant(app, body)?;
        let bytes = change.encode();
        Ok((change, bytes))
    };
    let (change, bytes) = app.blocking(read).await?;
    let revision = app.writer.make(change, bytes).await?;
    app.counts.changes.fetch_add(1, Relaxed);
    Ok(json(StatusCode::OK, &MadeBody { revision }))
}

/// The length of a body, which has to be stated, of JSON.
fn length(headers: &HeaderMap) -> Result<usize, Fault> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    // A page of another origin can't send this type without asking first.
    if text(header::CONTENT_TYPE).split(';').next().map(str::trim) != Some("application/json") {
        let fix = "send JSON, with Content-Type: application/json";
        return Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is no JSON", fix));
    }
    let length = text(header::CONTENT_LENGTH).parse().map_err(|_| {
        let fix = "send Content-Length";
        Fault::new(StatusCode::LENGTH_REQUIRED, "the length of the body is not stated", fix)
    })?;
    if length > MAX_BODY_BYTES {
        let error = format!("a body of {length} bytes: {MAX_BODY_BYTES} bytes are the most");
        return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, error, "insert it in parts"));
    }
    Ok(length)
}

pub(super) fn folder(_: &App, body: FolderBody) -> Result<Change, Fault> {
    let FolderBody { path, description, versioning, columns } = body;
    Ok(Change::CreateFolder { path, description, versioning, columns })
}

pub(super) fn set(_: &App, SetBody { path, description }: SetBody) -> Result<Change, Fault> {
    Ok(Change::CreateSet { path, description })
}

pub(super) fn column(_: &App, body: ColumnBody) -> Result<Change, Fault> {
    Ok(Change::AddColumn { folder: body.folder, column: body.column })
}

pub(super) fn rename(
    _: &App,
    RenameBody { folder, from, to }: RenameBody,
) -> Result<Change, Fault> {
    Ok(Change::RenameColumn { folder, from, to })
}

pub(super) fn channel(_: &App, body: ChannelBody) -> Result<Change, Fault> {
    let ChannelBody { folder, channel, name } = body;
    Ok(Change::NameChannel { folder, channel, name })
}

pub(super) fn insert(app: &App, body: InsertBody) -> Result<Change, Fault> {
    let mut batches = Vec::with_capacity(body.batches.len());
    for batch in body.batches {
        let columns = app.state.read().folder(&batch.folder)?.columns().to_vec();
        let fix =
            "a record is a list of values in the order of columns, or an object by their names";
        batches.push(batch.batch(&columns).map_err(|why| Fault::bad(why, fix))?);
    }
    Ok(Change::Insert(batches))
}

pub(super) fn truncate(_: &App, body: TruncateBody) -> Result<Change, Fault> {
    let channels = body.channels.as_deref().map(numbers).transpose();
    let channels = channels.map_err(|why| Fault::bad(why, "leave channels out for all of them"))?;
    let (folder, until) = (body.folder, body.until);
    Ok(Change::Truncate { folder, until, channels: channels.unwrap_or(Numbers::All) })
}

pub(super) fn tag(app: &App, body: TagBody) -> Result<Change, Fault> {
    let TagBody { name, path, description, revision, as_of } = body;
    let date = as_of.as_deref().map(time_us).transpose();
    let date = date.map_err(|why| Fault::bad(why, "leave as_of out for now"))?;
    let revision = match (revision, date) {
        (Some(_), Some(_)) => {
            return Err(Fault::bad("both revision and as_of are given", "give one of them"));
        }
        (revision, date) => revision.or(date.map(|date| app.state.read().revision_at(date))),
    };
    Ok(Change::Tag { name, path, description, revision })
}

pub(super) fn clone(
    _: &App,
    CloneBody { from, to, description }: CloneBody,
) -> Result<Change, Fault> {
    Ok(Change::Clone { from, to, description })
}

pub(super) fn lock(_: &App, LockBody { name, locked }: LockBody) -> Result<Change, Fault> {
    Ok(Change::LockTag(name, locked))
}

pub(super) fn delete(_: &App, DeleteBody { name }: DeleteBody) -> Result<Change, Fault> {
    Ok(Change::DeleteTag(name))
}
