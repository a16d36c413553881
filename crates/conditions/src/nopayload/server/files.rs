//! The file service: payloads by key. A key leads to the same bytes for ever.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State as Extract};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::answer::{JSON, Refusal, bytes_of, read};
use super::questions::Parts;
use super::storage::{Incoming, Outgoing, hex};
use crate::model::Change as ServiceChange;
use crate::nopayload::model::{Change, Nopayload};
use crate::nopayload::protocol::{FileView, check_key};
use crate::server::app::{App, beside};
use crate::server::known::{FOREVER, is_known, lists};

/// The most bytes of a file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// How many bytes are gathered before they are written.
const GATHERED_BYTES: usize = 1 << 20;

/// How long a client may take for a file that it uploads.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Without any of it.
    silence: Duration,
    /// For all of it, beside a second for each MiB that has come.
    whole: Duration,
}

const PATIENCE: Patience =
    Patience { silence: Duration::from_secs(60), whole: Duration::from_secs(60) };

/// The bytes of a file that add a second to its time.
const BYTES_PER_S: u64 = 1 << 20;

impl Patience {
    /// Until when more has to come of a file that began at a time, with so much of it there.
    fn end(self, begun: Instant, size: u64) -> Instant {
        let whole = begun + self.whole + Duration::from_secs(size / BYTES_PER_S);
        whole.min(Instant::now() + self.silence)
    }
}

fn key(parts: Parts) -> Result<String, Refusal> {
    let Ok(Path(mut parts)) = parts else { return Err(Refusal::bad("the key is no UTF-8")) };
    let key = parts.pop().unwrap_or_default();
    check_key(&key).map_err(Refusal::bad)?;
    Ok(key)
}

/// `PUT /upload/KEY`.
pub(super) async fn upload(
    Extract(app): Extract<Arc<App>>,
    parts: Parts,
    request: Request,
) -> Result<Response, Refusal> {
    let stored = store(&app, parts, request).await;
    let count = if stored.is_ok() { &app.counts.changes } else { &app.counts.refused };
    count.fetch_add(1, Relaxed);
    stored
}

async fn store(app: &Arc<App>, parts: Parts, request: Request) -> Result<Response, Refusal> {
    let key = key(parts)?;
    let stated = request.headers().get(header::CONTENT_LENGTH);
    let stated = stated.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    check_size(stated.unwrap_or(0))?;
    let _place = app.storage.uploads.try_acquire().map_err(|_| {
        let detail = "too many files are being received: send it again later";
        Refusal::detail(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    let mut incoming = receive(app, request.into_body(), PATIENCE).await?;
    let (sha256, size) = incoming.sum();
    let change = Change::PutFile { key: key.clone(), sha256, size };
    let there = {
        let (key, change) = (key.clone(), change.clone());
        let check = move |state: &Nopayload| state.check(&change).map(|_| state.file(&key));
        // What is refused is not kept: no key would ever lead to it.
        read(app, |_| true, check).await??.is_some()
    };
    let keep = {
        let app = Arc::clone(app);
        move || incoming.keep(&app.storage, &sha256)
    };
    match app.storage.has_origin() {
        true => apart(&app.storage.sends, keep).await?,
        false => blocking(keep).await?,
    }
    let change = ServiceChange::Nopayload(change);
    let bytes = change.encode();
    app.writer.make(change, bytes, None).await?;
    let view = FileView { key: &key, checksum: format!("sha256:{}", hex(&sha256)), size };
    let status = if there { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, [(header::CONTENT_TYPE, JSON)], bytes_of(&view)).into_response())
}

fn check_size(size: u64) -> Result<(), Refusal> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    let detail = format!("a file of {size} bytes or more: {MAX_FILE_BYTES} bytes are the most");
    Err(Refusal::detail(StatusCode::PAYLOAD_TOO_LARGE, detail))
}

/// Receives a file, in pieces that are written beside the thread of connections.
async fn receive(app: &Arc<App>, body: Body, patience: Patience) -> Result<Incoming, Refusal> {
    let mut incoming = {
        let app = Arc::clone(app);
        blocking(move || app.storage.begin()).await?
    };
    let begun = Instant::now();
    let (mut frames, mut size, mut gathered) = (body.into_data_stream(), 0, Vec::<u8>::new());
    loop {
        let next = timeout_at(patience.end(begun, size), frames.next()).await;
        let next = next.map_err(|_| {
            let detail = format!(
                "the file comes too slowly, {size} bytes of it in {} s: it may take {} s and 1 s a \
                 MiB, {} s without any of it",
                begun.elapsed().as_secs(),
                patience.whole.as_secs(),
                patience.silence.as_secs()
            );
            Refusal::detail(StatusCode::REQUEST_TIMEOUT, detail)
        })?;
        let is_last = next.is_none();
        if let Some(frame) = next {
            let frame =
                frame.map_err(|_| Refusal::bad("the file can't be read: send all of it"))?;
            size += frame.len() as u64;
            check_size(size)?;
            gathered.extend_from_slice(&frame);
        }
        if gathered.len() >= GATHERED_BYTES || is_last {
            let write = move || {
                incoming.write(&gathered)?;
                gathered.clear();
                Ok((incoming, gathered))
            };
            (incoming, gathered) = blocking(write).await?;
        }
        if is_last {
            return Ok(incoming);
        }
    }
}

/// Does what waits for the disk beside the thread of connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    beside(work).await.ok_or_else(Refusal::own)?.map_err(failed)
}

/// Does what waits for where files are kept on a thread of its own, of which there are only as many
/// as `places`: it may take minutes, in which the threads beside that of connections are needed.
async fn apart<T: Send + 'static>(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    // It is never closed, and held until the work is done, whoever still waits for that.
    let place = Arc::clone(places).acquire_owned().await.map_err(|_| Refusal::own())?;
    let (done, is_done) = oneshot::channel();
    let work = move || {
        let _place = place;
        let _ = done.send(work());
    };
    std::thread::Builder::new().name("files".to_owned()).spawn(work).map_err(failed)?;
    is_done.await.map_err(|_| Refusal::own())?.map_err(failed)
}

fn failed(error: io::Error) -> Refusal {
    tracing::error!("files: {error}");
    let status = match error.kind() {
        io::ErrorKind::NotConnected => {
            let away = "the store of files doesn't answer, or takes nothing: try again later";
            return Refusal::detail(StatusCode::SERVICE_UNAVAILABLE, away.to_owned());
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StatusCode::INSUFFICIENT_STORAGE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::detail(status, format!("the file can't be kept or read: {error}"))
}

/// `GET /dbstore/KEY`.
pub(super) async fn download(
    Extract(app): Extract<Arc<App>>,
    parts: Parts,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    app.counts.reads.fetch_add(1, Relaxed);
    let key = key(parts)?;
    let file = read(&app, |_| true, move |state| state.file(&key)).await?;
    let file = file.ok_or_else(Refusal::not_found)?;
    let entity = format!("\"{}\"", hex(&file.sha256));
    let kept = [(header::ETAG, entity.clone()), (header::CACHE_CONTROL, FOREVER.to_owned())];
    if is_known(lists(&headers), &entity) {
        app.counts.not_modified.fetch_add(1, Relaxed);
        return Ok((StatusCode::NOT_MODIFIED, kept).into_response());
    }
    let read = {
        let app = Arc::clone(&app);
        move || app.storage.read(file.sha256, file.size)
    };
    let outgoing = match lacks(&app, file.sha256, file.size).await? {
        true => apart(&app.storage.fetches, read).await?,
        false => blocking(read).await?,
    };
    let described = [
        ("content-type", "application/octet-stream".to_owned()),
        ("content-length", file.size.to_string()),
        ("repr-digest", format!("sha-256=:{}:", STANDARD.encode(file.sha256))),
    ];
    let body = Body::from_stream(stream::try_unfold(outgoing, next));
    Ok((kept, described, body).into_response())
}

/// Whether a file has to be fetched from where it is kept.
async fn lacks(app: &Arc<App>, sha256: [u8; 32], size: u64) -> Result<bool, Refusal> {
    if !app.storage.has_origin() {
        return Ok(false);
    }
    let app = Arc::clone(app);
    blocking(move || Ok(app.storage.lacks(sha256, size))).await
}

/// The next bytes of a file, with what reads those after them.
async fn next(mut outgoing: Outgoing) -> io::Result<Option<(Bytes, Outgoing)>> {
    let read = move || Ok(outgoing.next()?.map(|bytes| (bytes, outgoing)));
    let panicked = || io::Error::other("the thread that reads it has panicked");
    let next = beside(read).await.ok_or_else(panicked)?;
    // The client sees an answer that is cut short.
    next.inspect_err(|error: &io::Error| tracing::error!("files: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_time_for_all_of_it_that_grows_with_what_has_come() {
        let begun = Instant::now();
        let seconds = |size| {
            let silence = Duration::from_secs(1 << 20);
            let end = Patience { silence, ..PATIENCE }.end(begun, size);
            end.duration_since(begun).as_secs()
        };
        assert_eq!([0, 1 << 20, MAX_FILE_BYTES].map(seconds), [60, 61, 60 + 1_024]);
        assert!(PATIENCE.end(begun, MAX_FILE_BYTES) <= Instant::now() + PATIENCE.silence);
    }
}
