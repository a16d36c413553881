//! Changes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use serde::de::DeserializeOwned;

use super::app::App;
use super::asked::dated;
use super::fault::{Fault, json};
use super::receive::{Room, receive};
use super::shared::Shared;
use crate::model::{Change, Numbers, Refusal, State};
use crate::protocol::{
    Bulk, ChannelBody, CloneBody, ColumnBody, DeleteBody, FORM_TYPE, FolderBody, INSERT_TYPE,
    Incoming, LockBody, MAX_BODY_BYTES, MAX_COLUMN_BYTES, MadeBody, PickBody, RenameBody, SetBody,
    TagBody, TruncateBody, decode_insert, numbers, path, time_us,
};

/// The type of a body in JSON.
const JSON: &str = "application/json";

/// The most bytes of a question's parameters in a body.
const FORM_BYTES: usize = 4 << 20;

/// The longest body that the thread of connections takes apart itself: to pass it on to another
/// thread and what it means back takes longer.
const LITTLE_BODY: usize = 1 << 10;

/// The state that a body is read against.
pub(super) enum Against<'a> {
    /// As it is when it is looked at.
    Shared(&'a Shared),
    /// As it is held by whoever reads the body.
    Held(&'a State),
}

impl Against<'_> {
    /// Looks at it, as briefly as that takes.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        match self {
            Self::Shared(shared) => look(&shared.read()),
            Self::Held(state) => look(state),
        }
    }
}

/// What a body of a type means.
type Meaning = fn(&Against<'_>, &'static str, &[u8]) -> Result<Change, Fault>;

/// The handler of a change that is asked for with this body, in JSON.
pub(super) fn change<B: DeserializeOwned + 'static>(
    meant: fn(&Against<'_>, B) -> Result<Change, Fault>,
) -> MethodRouter<Arc<App>> {
    handler(&[JSON], move |against, _, body| meant(against, from_json(body)?))
}

/// The handler of insertions, in JSON or in the binary form.
pub(super) fn insertion() -> MethodRouter<Arc<App>> {
    let meant: Meaning = |against, kind, body| match kind {
        JSON => insert(against, from_json(body)?),
        _ => insert_bulk(against, body),
    };
    handler(&[JSON, INSERT_TYPE], meant)
}

fn from_json<B: DeserializeOwned>(body: &[u8]) -> Result<B, Fault> {
    serde_json::from_slice(body).map_err(|error| {
        Fault::bad(format!("the body: {error}"), "docs/conditions.md lists the fields")
    })
}

fn handler<M>(types: &'static [&'static str], meant: M) -> MethodRouter<Arc<App>>
where
    M: Fn(&Against<'_>, &'static str, &[u8]) -> Result<Change, Fault>
        + Copy
        + Send
        + Sync
        + 'static,
{
    post(async move |Extract(app): Extract<Arc<App>>, request: Request| {
        let made = make(&app, request, types, meant).await;
        app.answered(made)
    })
}

async fn make(
    app: &Arc<App>,
    request: Request,
    types: &[&'static str],
    meant: impl Fn(&Against<'_>, &'static str, &[u8]) -> Result<Change, Fault> + Send + 'static,
) -> Result<Response, Fault> {
    let kind = kind(request.headers(), types)?;
    let length = length(request.headers())?;
    // Memory is taken for what all clients send together, and free again once the change is made.
    let (body, mut room) = receive(&app.bodies, request.into_body(), length).await?;
    let read = move |against: &Against<'_>| {
        let change = meant(against, kind, &body)?;
        let bytes = change.encode();
        Ok((change, bytes))
    };
    let (change, bytes) = match length <= LITTLE_BODY {
        true => {
            let state = app.state.free().await;
            read(&Against::Held(&state))?
        }
        false => app.blocking(move |app| read(&Against::Shared(&app.state))).await?,
    };
    room.grow(bytes.len())?;
    let revision = app.writer.make(change, bytes, room.permit()).await?;
    app.counts.changes.fetch_add(1, Relaxed);
    Ok(json(StatusCode::OK, &MadeBody { revision }))
}

/// What a request says that is no change.
pub(super) async fn body<B: DeserializeOwned>(app: &App, request: Request) -> Result<B, Fault> {
    kind(request.headers(), &[JSON])?;
    let length = length(request.headers())?;
    let (body, _room) = receive(&app.bodies, request.into_body(), length).await?;
    from_json(&body)
}

/// The parameters of a question in a body, written as in a query, and the room that they take.
pub(super) async fn form(app: &App, request: Request) -> Result<(String, Room), Fault> {
    kind(request.headers(), &[FORM_TYPE])?;
    let length = length(request.headers())?;
    if length > FORM_BYTES {
        let error = format!("parameters of {length} bytes: {FORM_BYTES} bytes are the most");
        return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, error, "ask in parts"));
    }
    if request.uri().query().is_some() {
        let error = "parameters in the query and in the body";
        return Err(Fault::bad(error, "write all of them into the body"));
    }
    let (body, room) = receive(&app.forms, request.into_body(), length).await?;
    let form = String::from_utf8(body);
    let form = form.map_err(|_| Fault::bad("the body is no text", "encode it as a query is"))?;
    Ok((form, room))
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Which of some types a body has. A page of another origin can't send any but a form, which
/// changes nothing, without asking first; and the harness refuses those.
fn kind(headers: &HeaderMap, types: &[&'static str]) -> Result<&'static str, Fault> {
    let stated = header_text(headers, header::CONTENT_TYPE).split(';').next().map(str::trim);
    let kind = types.iter().find(|kind| stated == Some(kind));
    kind.copied().ok_or_else(|| {
        let fix = format!("send it with Content-Type: {}", types.join(" or "));
        let error = "the body is of no type that is read here";
        Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error, &fix)
    })
}

/// The length of a body, which has to be stated.
fn length(headers: &HeaderMap) -> Result<usize, Fault> {
    let length = header_text(headers, header::CONTENT_LENGTH).parse().map_err(|_| {
        let fix = "send Content-Length";
        Fault::new(StatusCode::LENGTH_REQUIRED, "the length of the body is not stated", fix)
    })?;
    if length > MAX_BODY_BYTES {
        let error = format!("a body of {length} bytes: {MAX_BODY_BYTES} bytes are the most");
        return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, error, "insert it in parts"));
    }
    Ok(length)
}

pub(super) fn folder(_: &Against<'_>, body: FolderBody) -> Result<Change, Fault> {
    let FolderBody { path, description, versioning, columns } = body;
    Ok(Change::CreateFolder { path, description, versioning, columns })
}

pub(super) fn set(
    _: &Against<'_>,
    SetBody { path, description }: SetBody,
) -> Result<Change, Fault> {
    Ok(Change::CreateSet { path, description })
}

pub(super) fn column(_: &Against<'_>, body: ColumnBody) -> Result<Change, Fault> {
    Ok(Change::AddColumn { folder: body.folder, column: body.column })
}

pub(super) fn rename(
    _: &Against<'_>,
    RenameBody { folder, from, to }: RenameBody,
) -> Result<Change, Fault> {
    Ok(Change::RenameColumn { folder, from, to })
}

pub(super) fn channel(_: &Against<'_>, body: ChannelBody) -> Result<Change, Fault> {
    let ChannelBody { folder, channel, name } = body;
    // Questions name channels with commas between.
    if name.contains(',') {
        return Err(Refusal::BadName("channel", name).into());
    }
    Ok(Change::NameChannel { folder, channel, name })
}

fn insert(against: &Against<'_>, body: Incoming) -> Result<Change, Fault> {
    // Before anything is looked up: there may be a million of them.
    if let Some(empty) = body.empty() {
        return Err(Refusal::NoObjects(empty).into());
    }
    let mut batches = Vec::with_capacity(body.batches.len());
    let mut room = MAX_COLUMN_BYTES;
    for batch in body.batches {
        let columns = |state: &State| state.folder(&batch.folder).map(|one| one.columns().to_vec());
        let columns = against.look(columns)?;
        let fix =
            "a record is a list of values in the order of columns, or an object by their names";
        batches.push(batch.batch(&columns, &mut room).map_err(|why| Fault::bad(why, fix))?);
    }
    Ok(Change::Insert(batches))
}

fn insert_bulk(against: &Against<'_>, body: &[u8]) -> Result<Change, Fault> {
    let fix = "docs/conditions.md describes the binary form";
    let bulks = decode_insert(body).map_err(|why| Fault::bad(why, fix))?;
    let batch =
        |state: &State, Bulk { columns, batch }: Bulk| match state.folder(&batch.folder)?.columns()
        {
            own if own == columns => Ok(batch),
            _ => Err(Refusal::BadPayload(batch.folder)),
        };
    let batches = |state: &State| {
        bulks.into_iter().map(|bulk| batch(state, bulk)).collect::<Result<_, Refusal>>()
    };
    Ok(Change::Insert(against.look(batches)?))
}

pub(super) fn truncate(_: &Against<'_>, body: TruncateBody) -> Result<Change, Fault> {
    let channels = body.channels.as_deref().map(numbers).transpose();
    let channels = channels.map_err(|why| Fault::bad(why, "leave channels out for all of them"))?;
    let (folder, until) = (body.folder, body.until);
    Ok(Change::Truncate { folder, until, channels: channels.unwrap_or(Numbers::All) })
}

pub(super) fn tag(against: &Against<'_>, body: TagBody) -> Result<Change, Fault> {
    let TagBody { name, path, description, revision, as_of, picks } = body;
    if let Some(tags) = picks {
        if revision.is_some() || as_of.is_some() {
            let fix = "leave revision and as_of out, or tag the head and have that tag picked";
            return Err(Fault::bad("a global tag shows what other tags show", fix));
        }
        return Ok(Change::GlobalTag { name, path, description, tags });
    }
    let date = as_of.as_deref().map(time_us).transpose();
    let date = date.map_err(|why| Fault::bad(why, "leave as_of out for now"))?;
    let revision = match (revision, date) {
        (Some(_), Some(_)) => {
            return Err(Fault::bad("both revision and as_of are given", "give one of them"));
        }
        (revision, date) => {
            let dated = date.map(|date| against.look(|state| dated(state, date))).transpose()?;
            revision.or(dated)
        }
    };
    Ok(Change::Tag { name, path, description, revision })
}

pub(super) fn pick(
    _: &Against<'_>,
    PickBody { name, picks, unpick }: PickBody,
) -> Result<Change, Fault> {
    let unpick = unpick.iter().map(|written| path(written).to_owned()).collect();
    Ok(Change::Pick { name, tags: picks, unpick })
}

pub(super) fn clone(
    _: &Against<'_>,
    CloneBody { from, to, description }: CloneBody,
) -> Result<Change, Fault> {
    Ok(Change::Clone { from, to, description })
}

pub(super) fn lock(_: &Against<'_>, LockBody { name, locked }: LockBody) -> Result<Change, Fault> {
    Ok(Change::LockTag(name, locked))
}

pub(super) fn delete(_: &Against<'_>, DeleteBody { name }: DeleteBody) -> Result<Change, Fault> {
    Ok(Change::DeleteTag(name))
}
