//! Exports: all that is shown over a range, sent as it is read, however much it is.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Extract};
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::app::{App, params, query_params};
use super::fault::Fault;
use super::reads::{range, revision};
use super::writes::form;
use crate::model::{Answer, Batch, Export, Numbers};
use crate::protocol::{
    Bulk, Format, INSERT_TYPE, LineView, Params, REVISION, csv_header, csv_lines, encode_insert,
};

/// The parameters of an export.
pub(super) const PARAMETERS: &[&str] =
    &["under", "since", "until", "channels", "tag", "revision", "as_of", "format"];

/// The most objects of a part, which is read and sent as one.
const PART_OBJECTS: usize = 8_192;

/// What is still to be sent.
struct Rest {
    app: Arc<App>,
    export: Export,
    format: Format,
    /// For the ranges of channels that it is of, of which a body may name half a million.
    _room: Option<OwnedSemaphorePermit>,
}

/// `GET /export`.
pub(super) async fn export(Extract(app): Extract<Arc<App>>, uri: Uri) -> Result<Response, Fault> {
    app.counts.reads.fetch_add(1, Relaxed);
    let begun = match params(&uri, PARAMETERS) {
        Ok(params) => begin(&app, params).await,
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
    let params = match form(&app, request).await {
        Ok((form, _room)) => app.blocking(move |_| query_params(&form, PARAMETERS)).await,
        Err(fault) => Err(fault),
    };
    let begun = match params {
        Ok(params) => begin(&app, params).await,
        Err(fault) => Err(fault),
    };
    app.answered(begun)
}

async fn begin(app: &Arc<App>, params: Params) -> Result<Response, Fault> {
    let format = match params.format.unwrap_or(Format::Jsonl) {
        Format::Json => {
            let fix = "ask for jsonl, csv or binary, or /api/v1/slice for one time";
            return Err(Fault::bad("format=json: an export has lines", fix));
        }
        Format::Arrow => {
            let fix = "ask for jsonl, csv or binary, or /api/v1/slice for one time";
            return Err(Fault::bad("format=arrow: that is a form of slices", fix));
        }
        format => format,
    };
    let ranges = params.selection.numbers.as_ref().map_or(&[][..], Numbers::ranges);
    let room = app.unsent.room(size_of_val(ranges))?;
    let (export, head, revision) = app.blocking(move |app| prepare(app, &params, format)).await?;
    let rest = Rest { app: Arc::clone(app), export, format, _room: room };
    // What is wrong with the first part is still a refusal.
    let (first, rest) = part(rest).await?;
    let first = (!first.is_empty()).then_some((Ok(first), rest));
    let begin = stream::iter([Ok::<_, std::io::Error>(Bytes::from(head))]);
    let parts = stream::unfold(Step::First(first), async |step| match step {
        Step::First(first) => first.map(|(bytes, rest)| (bytes, Step::Rest(rest))),
        Step::Rest(rest) => match part(rest).await {
            Ok((bytes, _)) if bytes.is_empty() => None,
            Ok((bytes, rest)) => Some((Ok(bytes), Step::Rest(rest))),
            // Too late for a status: the answer is cut off, and the client sees that it is.
            Err(fault) => {
                tracing::warn!("an export breaks off: {}", fault.body.error);
                Some((Err(std::io::Error::other(fault.body.error)), Step::First(None)))
            }
        },
    });
    let body = Body::from_stream(stream::StreamExt::chain(begin, parts));
    let kind = match format {
        Format::Csv => "text/csv",
        Format::Binary => INSERT_TYPE,
        _ => "application/jsonl",
    };
    let headers = [(header::CONTENT_TYPE.as_str(), kind.to_owned()), (REVISION, revision)];
    Ok((headers, body).into_response())
}

enum Step {
    First(Option<(Result<Bytes, std::io::Error>, Rest)>),
    Rest(Rest),
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
        let columns = state.folder(under)?.columns_at(view.revision);
        let fix = "ask for jsonl or binary";
        head = csv_header(columns).map_err(|why| Fault::bad(why, fix))?;
    }
    let numbers = params.selection.numbers.clone().unwrap_or(Numbers::All);
    let export = Export::new(under, range(params)?, numbers, view, PART_OBJECTS);
    Ok((export, head, view.revision.to_string()))
}

/// The bytes of the next part; none after the last.
async fn part(rest: Rest) -> Result<(Bytes, Rest), Fault> {
    let Rest { app, mut export, format, _room } = rest;
    let read = move |app: &App| {
        let answer = export.next(&app.state.read())?;
        let bytes = answer.map_or(Vec::new(), |answer| match format {
            Format::Binary => binary(answer),
            Format::Csv => csv_lines(&answer),
            _ => lines(&answer),
        });
        Ok((app.unsent.hold(bytes)?, export))
    };
    let (bytes, export) = app.blocking(read).await?;
    Ok((bytes, Rest { app, export, format, _room }))
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
        let answer = runtime.block_on(begin(&app, params)).expect("an export");
        assert_eq!(app.unsent.left_kib(), left - (800_000_usize).div_ceil(1024));
        drop(answer);
        assert_eq!(app.unsent.left_kib(), left);
    }
}
