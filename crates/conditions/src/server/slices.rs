//! Slices: what is shown at a time in all folders of a set. Whatever time is asked for leads to the
//! one place whose answer never changes, so that every cache between holds it once.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use axum::extract::{Path, State as Extract};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::app::{App, needed, params};
use super::fault::{Fault, json_bytes};
use super::known::{FOREVER, is_known};
use super::reads::revision;
use super::ready::{Ready, SliceKey};
use crate::model::{HEAD, MAX_TIME, Of, State, View};
use crate::protocol::{
    BASE, Format, Params, REVISION, SLICE_TYPE, SliceHead, SliceView, encode_slice, percent_encode,
};

/// Where a revision or a date of the past leads has the same answer for ever, as another place may.
const LEADS_LONG: &str = "public, max-age=31536000";

/// Where the head leads may change with the next change; a tag may be deleted and made anew.
const LEADS_NOW: &str = "no-cache";
const LEADS_A_WHILE: &str = "public, max-age=60";

/// `GET /slice?t=TIME`: leads to the place of the answer.
pub(super) async fn resolve(Extract(app): Extract<Arc<App>>, uri: Uri) -> Result<Response, Fault> {
    let allowed = ["t", "under", "tag", "revision", "as_of", "format"];
    let led = match params(&uri, &allowed) {
        Ok(params) => app.blocking(move |app| lead(app, &params)).await,
        Err(fault) => Err(fault),
    };
    app.answered(led)
}

fn lead(app: &App, params: &Params) -> Result<Response, Fault> {
    let time = needed(params.t, "t")?;
    let under = normal(params.under.as_deref());
    let state = app.state.read();
    state.check_path(under)?;
    let asked = revision(&state, params)?;
    let tag = params.tag.as_deref().filter(|tag| *tag != HEAD);
    let view = state.view(tag, asked, under)?;
    let place = {
        let mut leads = app.leads.lock().unwrap_or_else(PoisonError::into_inner);
        leads.lead(&state, under, time, view)?
    };
    let mut location =
        format!("{BASE}/slice/{}/{}?under={}", place.revision, place.since, percent_encode(under));
    match view.of {
        Of::Head => {}
        Of::User(id) => location.push_str(&format!("&user={id}")),
        Of::Global(id) => location.push_str(&format!("&global={id}")),
    }
    let format = format(params)?;
    if format != Format::Json {
        location.push_str(&format!("&format={}", format.name()));
    }
    let kept = match (tag, asked) {
        _ if !is_past(&state, params) => LEADS_NOW,
        (None, Some(_)) => LEADS_LONG,
        (None, None) => LEADS_NOW,
        (Some(_), _) => LEADS_A_WHILE,
    };
    let headers = [
        (header::LOCATION.as_str(), location),
        (header::CACHE_CONTROL.as_str(), kept.to_owned()),
        (REVISION, state.revision().to_string()),
    ];
    Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

/// The path as the keys of slices have it: without slashes at its end.
fn normal(under: Option<&str>) -> &str {
    match under.unwrap_or("/").trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

/// Whether no change can come any more at or before the date that is asked for.
fn is_past(state: &State, params: &Params) -> bool {
    let last_us = state.time_us(state.revision());
    params.as_of_us.is_none_or(|date| last_us.is_some_and(|last| date < last))
}

/// `GET /slice/REVISION/SINCE`: the answer, for ever.
pub(super) async fn slice(
    Extract(app): Extract<Arc<App>>,
    Path((revision, since)): Path<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Fault> {
    let key = key(&revision, &since, &uri);
    let made = match key {
        Ok(key) => app.blocking(move |app| ready(app, key)).await,
        Err(fault) => Err(fault),
    };
    let sent = made.map(|(ready, format)| send(&app, &ready, format, &headers));
    app.answered(sent)
}

fn key(revision: &str, since: &str, uri: &Uri) -> Result<SliceKey, Fault> {
    let params = params(uri, &["under", "user", "global", "format"])?;
    let number = |text: &str, name| {
        let fix = "GET /api/v1/slice?t=TIME leads to the place of a slice";
        text.parse().map_err(|_| Fault::bad(format!("{text:?} is no {name}"), fix))
    };
    let within = |time: u64| match time <= MAX_TIME {
        true => Ok(time),
        false => Err(Fault::bad(format!("{time} is no time"), "times are 0 to 2^63 - 1")),
    };
    let format = format(&params)?;
    Ok(SliceKey {
        under: normal(params.under.as_deref()).to_owned(),
        view: View { revision: number(revision, "revision")?, of: params.of },
        since: number(since, "time").and_then(within)?,
        format,
    })
}

/// The form of a slice: JSON, or binary.
fn format(params: &Params) -> Result<Format, Fault> {
    match params.format.unwrap_or(Format::Json) {
        format @ (Format::Json | Format::Binary) => Ok(format),
        format => {
            let error = format!("format={}: a slice is json or binary", format.name());
            Err(Fault::bad(error, "ask /api/v1/export for other forms"))
        }
    }
}

fn ready(app: &App, key: SliceKey) -> Result<(Ready, Format), Fault> {
    let format = key.format;
    let state = app.state.read();
    state.check_view(key.view, &key.under)?;
    if let Some(ready) = app.slices.get(&key) {
        app.counts.slices_ready.fetch_add(1, Relaxed);
        return Ok((ready, format));
    }
    state.check_path(&key.under)?;
    let folders = state.slice(&key.under, key.since, key.view)?;
    drop(state);
    let (revision, since) = (key.view.revision, key.since);
    let bytes = match format {
        Format::Binary => encode_slice(SliceHead { revision, since }, &folders),
        _ => {
            let view = SliceView { revision, since, folders: &folders };
            json_bytes(&view)?
        }
    };
    let ready = Ready::of(app.unsent.hold(bytes)?);
    app.slices.keep(key, &ready);
    Ok((ready, format))
}

fn send(app: &App, ready: &Ready, format: Format, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", ready.digest);
    let kept = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, FOREVER.to_owned())];
    if is_known(headers, &tag) {
        app.counts.not_modified.fetch_add(1, Relaxed);
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    app.counts.slices.fetch_add(1, Relaxed);
    let kind = match format {
        Format::Binary => SLICE_TYPE,
        _ => "application/json",
    };
    // RFC 9530: the same bytes are the whole of the content and of what it represents.
    let digest = format!("sha-256=:{}:", ready.digest);
    let described = [
        ("content-type", kind),
        ("content-digest", digest.as_str()),
        ("repr-digest", digest.as_str()),
    ];
    (kept, described, ready.bytes.clone()).into_response()
}
