//! Exports: all that is shown over a range, sent as it is read, however much it is.
//!
//! The digest of an export is known at its end: it is a trailer, for clients that take those, and a
//! last line, where that is asked for.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use sha2::Sha256;
use tokio::sync::OwnedSemaphorePermit;

use super::app::{App, params, query_params};
use super::asked::{range, revision};
use super::fault::Fault;
use super::known::Digest;
use super::map::read_ahead;
use super::writes::form;
use crate::model::{Answer, Batch, Export, Folder, Numbers, Refusal, State};
use crate::protocol::{
    Bulk, Format, INSERT_TYPE, LineView, Params, REVISION, csv_header, csv_lines, encode_insert,
};

/// The parameters of an export.
pub(super) const PARAMETERS: &[&str] =
    &["under", "since", "until", "channels", "tag", "revision", "as_of", "format", "digest"];

/// The most objects of a part, which is read and sent as one.
const PART_OBJECTS: usize = 8_192;

/// What is still to be sent.
struct Rest {
    app: Arc<App>,
    export: Export,
    format: Format,
    ends: Ends,
    /// For the ranges of channels that it is of, of which a body may name half a million.
    _room: Option<OwnedSemaphorePermit>,
}

/// How the digest is sent.
#[derive(Clone, Default)]
struct Ends {
    /// Of the bytes until now, where it is sent at all.
    hash: Option<Sha256>,
    has_line: bool,
    has_trailer: bool,
}

/// `GET /export`.
pub(super) async fn export(
    Extract(app): Extract<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    app.counts.reads.fetch_add(1, Relaxed);
    let begun = match params(&uri, PARAMETERS) {
        Ok(params) => begin(&app, params, &headers).await,
        Err(fault) => Err(fault),
    };
    app.answered(begun)
}

/// `POST /export`: the same with the parameters in a body.
pub(super) async fn by_form(
    Extract(app): Extract<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    app.counts.reads.fetch_add(1, Relaxed);
    let headers = request.headers().clone();
    let params = match form(&app, request).await {
        Ok((form, _room)) => app.blocking(move |_| query_params(&form, PARAMETERS)).await,
        Err(fault) => Err(fault),
    };
    let begun = match params {
        Ok(params) => begin(&app, params, &headers).await,
        Err(fault) => Err(fault),
    };
    app.answered(begun)
}

async fn begin(app: &Arc<App>, params: Params, headers: &HeaderMap) -> Result<Response, Fault> {
    let fix = "ask for jsonl, csv or binary, or /api/v1/slice for one time";
    let format = match params.format.unwrap_or(Format::Jsonl) {
        Format::Json => return Err(Fault::bad("format=json: an export has lines", fix)),
        Format::Arrow => return Err(Fault::bad("format=arrow: that is a form of slices", fix)),
        format => format,
    };
    let ranges = params.selection.numbers.as_ref().map_or(&[][..], Numbers::ranges);
    let room = app.unsent.room(size_of_val(ranges))?;
    let mut ends = Ends::of(headers, params.digest);
    let (export, head, revision) = app.blocking(move |app| prepare(app, &params, format)).await?;
    ends.add(&head);
    let has_trailer = ends.has_trailer;
    let rest = Rest { app: Arc::clone(app), export, format, ends, _room: room };
    // What is wrong with the first part is still a refusal.
    let first = part(rest).await?;
    let begin = stream::iter([Ok(Frame::data(Bytes::from(head)))]);
    let parts = stream::unfold(Step::Send(first), async |step| match step {
        Step::Send((bytes, rest)) if bytes.is_empty() => Some((rest.ends.frames(), Step::End)),
        Step::Send((bytes, rest)) => Some((vec![Ok(Frame::data(bytes))], Step::Read(rest))),
        Step::Read(rest) => match part(rest).await {
            Ok(read) => Some((Vec::new(), Step::Send(read))),
            // Too late for a status: the answer is cut off, and the client sees that it is.
            Err(fault) => {
                tracing::warn!("an export breaks off: {}", fault.body.error);
                Some((vec![Err(std::io::Error::other(fault.body.error))], Step::End))
            }
        },
        Step::End => None,
    });
    let body = Body::new(StreamBody::new(begin.chain(parts.flat_map(stream::iter))));
    let kind = match format {
        Format::Csv => "text/csv",
        Format::Binary => INSERT_TYPE,
        _ => "application/jsonl",
    };
    let headers = [(header::CONTENT_TYPE.as_str(), kind.to_owned()), (REVISION, revision)];
    let trailer = HeaderValue::from_static("content-digest, repr-digest");
    let trailer = has_trailer.then_some([(header::TRAILER, trailer)]);
    let mut answer = (headers, body).into_response();
    answer.headers_mut().extend(trailer.into_iter().flatten());
    Ok(answer)
}

/// What is sent next.
enum Step {
    Send((Bytes, Rest)),
    Read(Rest),
    End,
}

impl Ends {
    /// A trailer, where the client says that it takes them (RFC 9110, 6.5.1).
    fn of(headers: &HeaderMap, has_line: bool) -> Self {
        let lists = headers.get_all(header::TE).iter().filter_map(|list| list.to_str().ok());
        let mut codings = lists.flat_map(|list| list.split(','));
        let has_trailer = codings.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"));
        let hash = (has_line || has_trailer).then(Sha256::default);
        Self { hash, has_line, has_trailer }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(hash) = &mut self.hash {
            sha2::Digest::update(hash, bytes);
        }
    }

    /// What follows the last part.
    fn frames(self) -> Vec<Result<Frame<Bytes>, std::io::Error>> {
        let Some(digest) = self.hash.map(Digest::of_hash) else { return Vec::new() };
        let line = self.has_line.then(|| Frame::data(Bytes::from(digest.line())));
        let fields = self.has_trailer.then(|| digest.fields().into_iter().collect());
        line.into_iter().chain(fields.map(Frame::trailers)).map(Ok).collect()
    }
}

/// The export, its first bytes, and its revision.
fn prepare(app: &App, params: &Params, format: Format) -> Result<(Export, Vec<u8>, String), Fault> {
    let state = app.state.read();
    let under = params.under.as_deref().unwrap_or("/");
    state.check_path(under)?;
    let asked = revision(&state, params)?;
    let view = state.view(params.tag.as_deref(), asked, under)?;
    let mut head = Vec::new();
    if format == Format::Csv {
        // A CSV has the columns of one folder.
        let Ok(folder) = state.folder(under) else { return Err(no_csv(&state, under)) };
        let columns = folder.columns_at(view.revision);
        let fix = "ask for jsonl or binary";
        head = csv_header(columns).map_err(|why| Fault::bad(why, fix))?;
    }
    let numbers = params.selection.numbers.clone().unwrap_or(Numbers::All);
    let export = Export::new(under, range(params)?, numbers, view, PART_OBJECTS);
    let export = export.reading_ahead(read_ahead);
    Ok((export, head, view.revision.to_string()))
}

/// The most folders that are named.
const NAMED: usize = 5;

fn no_csv(state: &State, under: &str) -> Fault {
    let mut below: Vec<_> = state.under(under).map(Folder::path).take(NAMED + 1).collect();
    if below.is_empty() {
        return Refusal::NoFolder(under.to_owned()).into();
    }
    if below.len() > NAMED {
        below[NAMED] = "…";
    }
    let error = format!("a CSV is of one folder, and {under:?} is a set");
    let fix =
        format!("name one of {}, or ask for jsonl (a file that ends in .jsonl)", below.join(", "));
    Fault::new(StatusCode::NOT_FOUND, error, &fix)
}

/// The bytes of the next part; none after the last.
async fn part(rest: Rest) -> Result<(Bytes, Rest), Fault> {
    let app = Arc::clone(&rest.app);
    let rest = Arc::new(Mutex::new(rest));
    let read = |app: Arc<App>| {
        let rest = Arc::clone(&rest);
        let read = move |app: &App| {
            let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
            let Rest { export, format, ends, .. } = &mut *rest;
            let answer = export.next(&app.state.read())?;
            let bytes = answer.map_or(Vec::new(), |answer| match format {
                Format::Binary => binary(answer),
                Format::Csv => csv_lines(&answer),
                _ => lines(&answer),
            });
            ends.add(&bytes);
            Ok(app.unsent.hold(bytes)?)
        };
        async move { app.blocking(read).await }
    };
    let bytes = app.fetching(read).await?;
    // Whoever read it is done with it.
    let rest = Arc::into_inner(rest).ok_or_else(Fault::own)?;
    Ok((bytes, rest.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn binary(answer: Answer) -> Vec<u8> {
    let Answer { folder, columns, objects, payload } = answer;
    let batch = Batch { folder, tag: None, only_tag: false, objects, payload };
    encode_insert([Bulk { columns, batch }].iter())
}

fn lines(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in LineView::of(answer) {
        // Maps with keys that aren't text are all that is refused, and there are none.
        bytes.extend(serde_json::to_vec(&line).unwrap_or_default());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::crash::{folder, insert};
    use super::super::store::Store;
    use super::*;
    use crate::nopayload::server::storage::Storage;

    #[test]
    fn the_ranges_of_an_export_take_room_until_it_is_sent() {
        let data = tempfile::tempdir().expect("a folder");
        let store =
            Store::open(data.path(), u64::MAX, journal::SyncPolicy::Always).expect("a store");
        let storage = Storage::open(data.path()).expect("a storage");
        folder(&store, "/a").expect("a folder");
        insert(&store, "/a", 0).expect("an object");
        let app = Arc::new(App::new(store.shared(), store.writer(), storage));
        let ranges = (0..100_000).map(|n| (2 * n + 1, 2 * n + 1)).collect();
        let mut params = Params::default();
        params.selection.numbers = Some(Numbers::of_ranges(ranges));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let left = app.unsent.left_kib();
        let answer = runtime.block_on(begin(&app, params, &HeaderMap::new())).expect("an export");
        assert_eq!(app.unsent.left_kib(), left - (800_000_usize).div_ceil(1024));
        drop(answer);
        assert_eq!(app.unsent.left_kib(), left);
    }
}
