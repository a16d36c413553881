//! Slices: what is shown at a time in all folders of a set. Whatever time is asked for leads to the
//! one place whose answer never changes, so that every cache between holds it once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{Path, State as Extract};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::app::{App, needed, params};
use super::fault::Fault;
use super::reads::revision;
use super::ready::{Ready, SliceKey};
use crate::model::HEAD;
use crate::protocol::{
    BASE, Format, Params, REVISION, SLICE_TYPE, SliceHead, SliceView, encode_slice, percent_encode,
};

/// What never changes may be kept for a year, the longest that caches honour.
const FOREVER: &str = "public, max-age=31536000, immutable";

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
    let under = params.under.as_deref().unwrap_or("/");
    let state = app.state.read();
    state.check_path(under)?;
    let asked = revision(&state, params)?;
    let tag = params.tag.as_deref().filter(|tag| *tag != HEAD);
    let version = state.version(tag, asked, under)?;
    let place = state.canonical(under, time, version);
    let mut location =
        format!("{BASE}/slice/{}/{}?under={}", place.revision, place.since, percent_encode(under));
    if let Some(user) = version.user_tag {
        location.push_str(&format!("&user={user}"));
    }
    if params.format != Format::default() {
        location.push_str(&format!("&format={}", params.format.name()));
    }
    let kept = match (tag, asked) {
        (None, Some(_)) => FOREVER,
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

/// `GET /slice/REVISION/SINCE`: the answer, for ever.
pub(super) async fn slice(
    Extract(app): Extract<Arc<App>>,
    Path((revision, since)): Path<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Fault> {
    let known = headers.get_all(header::IF_NONE_MATCH);
    let known: Vec<String> =
        known.iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
    let key = key(&revision, &since, &uri);
    let made = match key {
        Ok(key) => app.blocking(move |app| ready(app, key)).await,
        Err(fault) => Err(fault),
    };
    let sent = made.map(|(ready, format)| send(&app, &ready, format, &known));
    app.answered(sent)
}

fn key(revision: &str, since: &str, uri: &Uri) -> Result<SliceKey, Fault> {
    let params = params(uri, &["under", "user", "format"])?;
    let number = |text: &str, name| {
        let fix = "GET /api/v1/slice?t=TIME leads to the place of a slice";
        text.parse().map_err(|_| Fault::bad(format!("{text:?} is no {name}"), fix))
    };
    Ok(SliceKey {
        under: params.under.unwrap_or_else(|| "/".to_owned()),
        revision: number(revision, "revision")?,
        since: number(since, "time")?,
        user: params.user,
        format: params.format,
    })
}

fn ready(app: &App, key: SliceKey) -> Result<(Ready, Format), Fault> {
    let format = key.format;
    let state = app.state.read();
    let version = state.user_version(key.user, key.revision, &key.under)?;
    if let Some(ready) = app.slices.get(&key) {
        app.counts.slices_ready.fetch_add(1, Relaxed);
        return Ok((ready, format));
    }
    state.check_path(&key.under)?;
    let folders = state.slice(&key.under, key.since, version)?;
    drop(state);
    let (revision, since) = (key.revision, key.since);
    let bytes = match format {
        Format::Binary => encode_slice(SliceHead { revision, since }, &folders),
        Format::Json => {
            let view = SliceView { revision, since, folders: &folders };
            serde_json::to_vec(&view).unwrap_or_default()
        }
    };
    let ready = Ready::of(bytes);
    app.slices.keep(key, &ready);
    Ok((ready, format))
}

fn send(app: &App, ready: &Ready, format: Format, known: &[String]) -> Response {
    let tag = format!("\"{}\"", ready.digest);
    let kept = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, FOREVER.to_owned())];
    if known.iter().any(|list| matches(list, &tag)) {
        app.counts.not_modified.fetch_add(1, Relaxed);
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    app.counts.slices.fetch_add(1, Relaxed);
    let kind = match format {
        Format::Json => "application/json",
        Format::Binary => SLICE_TYPE,
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

/// Whether a list of If-None-Match has the tag (RFC 9110, 13.1.2).
fn matches(list: &str, tag: &str) -> bool {
    let own = |one: &str| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag;
    list.split(',').any(|one| own(one.trim()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_list_matches_by_any_of_its_tags() {
        assert!(matches("\"a\", W/\"b\"", "\"b\"") && matches("*", "\"b\""));
        assert!(!matches("\"a\",\"c\"", "\"b\"") && !matches("", "\"b\""));
    }
}
