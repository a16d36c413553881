//! Slices: what is shown at a time in all folders of a set. Whatever time is asked for leads to the
//! one place whose answer never changes, so that every cache between holds it once.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State as Extract};
use axum::http::request::Parts;
use axum::http::{self, HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use service::Question;

use super::app::{App, needed, params, query_params};
use super::asked::revision;
use super::fault::{Fault, json_bytes};
use super::known::{FOREVER, NOW, lists, value};
use super::little::{is_little_look_up, is_little_slice};
use super::map::read_ahead;
use super::quick;
use super::reads::is_past;
use super::ready::{Making, Ready, SliceKey, Turn};
use super::shared::Reading;
use super::size::{self, Size};
use crate::model::{
    ANSWER_BYTES, Answer, Canonical, HEAD, Lead, Leads, MAX_TIME, Of, Refusal, Shown, State, View,
    answers,
};
#[cfg(feature = "arrow")]
use crate::protocol::encode_arrow;
use crate::protocol::{
    ARROW_TYPE, BASE, Format, Params, REVISION, SLICE_TYPE, SliceHead, SliceView, VALID_UNTIL,
    encode_shown, percent_encode,
};

/// Where a revision or a date of the past leads has the same answer for ever, as another place may.
const LEADS_LONG: &str = "public, max-age=31536000";

/// A tag of what the head showed may be deleted and made anew.
const LEADS_A_WHILE: &str = "public, max-age=60";

/// Where a time leads.
struct Led {
    key: SliceKey,
    /// For how long that may be kept.
    kept: &'static str,
    /// The last revision.
    revision: u64,
    /// A time up to which all times lead there.
    until: u64,
}

impl Led {
    fn headers(&self, place: HeaderName) -> [(HeaderName, HeaderValue); 4] {
        [
            (header::CACHE_CONTROL, HeaderValue::from_static(self.kept)),
            (HeaderName::from_static(REVISION), HeaderValue::from(self.revision)),
            (HeaderName::from_static(VALID_UNTIL), HeaderValue::from(self.until.min(MAX_TIME))),
            (place, value(location(&self.key))),
        ]
    }

    fn redirect(&self) -> http::Response<Bytes> {
        let headers = self.headers(header::LOCATION);
        quick::answer(StatusCode::TEMPORARY_REDIRECT, headers, Bytes::new())
    }
}

/// The parameters of where a time leads.
const RESOLVE: &[&str] = &["t", "under", "tag", "revision", "as_of", "format", "redirect"];

/// `GET /slice?t=TIME`: leads to the place of the answer, or is answered with what is there.
pub(super) async fn resolve(
    Extract(app): Extract<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    let (Parts { uri, headers, .. }, _) = request.into_parts();
    let answer = match params(&uri, RESOLVE) {
        Ok(params) => led(&app, params, &headers).await,
        Err(fault) => Err(fault),
    };
    app.answered(answer)
}

async fn led(app: &Arc<App>, params: Params, headers: &HeaderMap) -> Result<Response, Fault> {
    if params.redirect.unwrap_or(true) {
        let work = |app: &App, state: Reading<'_>, params: Params| lead(app, &state, &params);
        let size = |_: &App, state: &State, params: &Params| {
            let under = normal(params.under.as_deref());
            // What is refused is not large.
            view(state, params).map_or(Size::Medium, |view| size::look_up(state, under, view))
        };
        let led = app.read(params, is_little_lead, size, work).await??;
        return Ok(led.redirect().map(Body::from));
    }
    let params = Arc::new(params);
    let made = |app: Arc<App>| {
        let params = Arc::clone(&params);
        async move {
            let is_little = |app: &App, state: &State, params: &Arc<Params>| {
                is_little_whole(app, state, params)
            };
            let size =
                |app: &App, state: &State, params: &Arc<Params>| whole_size(app, state, params);
            let work =
                |app: &App, state: Reading<'_>, params: Arc<Params>| whole(app, state, &params);
            app.read(params, is_little, size, work).await?
        }
    };
    let (led, ready) = app.fetching(made).await?;
    let mut answer = answered(app, ready, led.key.format, lists(headers)).map(Body::from);
    answer.headers_mut().extend(led.headers(header::CONTENT_LOCATION));
    Ok(answer)
}

/// Whether it is little work to find where a time leads.
fn is_little_lead(app: &App, state: &State, params: &Params) -> bool {
    let under = normal(params.under.as_deref());
    // What is refused is, too.
    view(state, params).map_or(true, |view| {
        is_known(app, state, params, view) || is_little_look_up(state, under, view)
    })
}

/// What is answered to a little question of where a time leads.
pub(super) fn quick(
    app: &App,
    state: Reading<'_>,
    asked: &Question<'_>,
) -> Option<http::Response<Bytes>> {
    let params = query_params(asked.query, RESOLVE).ok()?;
    if params.redirect.unwrap_or(true) {
        let is_little = is_little_lead(app, &state, &params);
        return is_little.then(|| lead(app, &state, &params).ok())?.map(|led| led.redirect());
    }
    if !is_little_whole(app, &state, &params) {
        return None;
    }
    let (led, ready) = whole(app, state, &params).ok()?;
    let mut answer = answered(app, ready, led.key.format, quick::lists(asked));
    answer.headers_mut().extend(led.headers(header::CONTENT_LOCATION));
    Some(answer)
}

/// What is at `REVISION/SINCE`, where that is little.
pub(super) fn quick_place(
    app: &App,
    state: Reading<'_>,
    place: &str,
    asked: &Question<'_>,
) -> Option<http::Response<Bytes>> {
    let (revision, since) = place.split_once('/')?;
    let mut answer = quick_content(app, state, key(revision, since, asked.query).ok()?, asked)?;
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(app.kept(FOREVER)));
    Some(answer)
}

fn quick_content(
    app: &App,
    state: Reading<'_>,
    key: SliceKey,
    asked: &Question<'_>,
) -> Option<http::Response<Bytes>> {
    if !is_little_content(app, &state, &key) {
        return None;
    }
    let format = key.format;
    let ready = ready(app, state, key).ok()?;
    Some(answered(app, ready, format, quick::lists(asked)))
}

/// Whether the place to which a time leads is remembered.
fn is_known(app: &App, state: &State, params: &Params, view: View) -> bool {
    let (under, mut leads) = (normal(params.under.as_deref()), leads(app));
    params.t.is_some_and(|time| leads.known(state, under, time, view).is_some())
}

fn leads(app: &App) -> MutexGuard<'_, Leads> {
    app.leads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn view(state: &State, params: &Params) -> Result<View, Fault> {
    let under = normal(params.under.as_deref());
    state.check_path(under)?;
    let tag = params.tag.as_deref();
    Ok(state.view(tag, revision(state, params)?, under)?)
}

/// Whether it is little work to find where a time leads, with what is there.
fn is_little_whole(app: &App, state: &State, params: &Params) -> bool {
    let (Ok(asked), Some(time)) = (asked(state, params), params.t) else { return true };
    let Asked { under, view, format } = asked;
    match leads(app).known(state, under, time, view) {
        Some((place, _)) => is_little_content(app, state, &asked.key(place)),
        None => {
            is_little_look_up(state, under, view)
                && is_little_slice(state, under, (view, time), format)
        }
    }
}

/// How much work that is, where it is not little.
fn whole_size(app: &App, state: &State, params: &Params) -> Size {
    let (Ok(asked), Some(time)) = (asked(state, params), params.t) else { return Size::Medium };
    let Asked { under, view, .. } = asked;
    let known = leads(app).known(state, under, time, view).map(|(place, _)| asked.key(place));
    // What is there at another place is as large.
    let here = || asked.key(Canonical { revision: view.revision, since: time });
    size::slice(state, &known.unwrap_or_else(here))
}

/// What is asked of all folders at and below a path.
#[derive(Clone, Copy)]
struct Asked<'a> {
    under: &'a str,
    view: View,
    format: Format,
}

fn asked<'a>(state: &State, params: &'a Params) -> Result<Asked<'a>, Fault> {
    let format = format(params)?;
    Ok(Asked { under: normal(params.under.as_deref()), view: view(state, params)?, format })
}

impl Asked<'_> {
    fn key(&self, Canonical { revision, since }: Canonical) -> SliceKey {
        let view = View { revision, of: self.view.of };
        SliceKey { under: self.under.to_owned(), view, since, format: self.format }
    }
}

fn lead(app: &App, state: &State, params: &Params) -> Result<Led, Fault> {
    let (asked, time) = (asked(state, params)?, needed(params.t, "t")?);
    let Asked { under, view, .. } = asked;
    let place = match known(app, state, asked, time) {
        Some(place) => place,
        None => {
            let found = Lead::look_up(state, under, time, view)?;
            let place = found.place();
            leads(app).keep(under, view.of, found);
            place
        }
    };
    Ok(led_to(app, state, params, asked, place))
}

/// Where a time leads, with what is there: looked up in one pass where neither is known.
fn whole(app: &App, state: Reading<'_>, params: &Params) -> Result<(Led, Ready), Fault> {
    let (asked, time) = (asked(&state, params)?, needed(params.t, "t")?);
    let Asked { under, view, .. } = asked;
    if let Some(place) = known(app, &state, asked, time) {
        let led = led_to(app, &state, params, asked, place);
        let ready = ready(app, state, led.key.clone())?;
        return Ok((led, ready));
    }
    let (found, shown) = Lead::show(&state, under, time, view)?;
    let led = led_to(app, &state, params, asked, found.place());
    leads(app).keep(under, view.of, found);
    let ready = match app.slices.turn(&led.key) {
        Turn::Make(making) => {
            let made = made(&led.key, shown)?;
            drop(state);
            make(app, &led.key, made, making)?
        }
        other => {
            drop(shown);
            drop(state);
            of_others(app, &led.key, other)?
        }
    };
    Ok((led, ready))
}

/// The place to which a time leads, where it is remembered.
fn known(app: &App, state: &State, asked: Asked<'_>, time: u64) -> Option<(Canonical, u64)> {
    let place = leads(app).known(state, asked.under, time, asked.view)?;
    app.counts.places_known.fetch_add(1, Relaxed);
    Some(place)
}

fn led_to(
    app: &App,
    state: &State,
    params: &Params,
    asked: Asked<'_>,
    (place, until): (Canonical, u64),
) -> Led {
    let of = asked.view.of;
    let is_dated = params.revision.is_some() || params.as_of_us.is_some();
    let is_of_head = params.tag.as_deref().is_none_or(|tag| tag == HEAD);
    let kept = match (is_of_head, is_dated) {
        _ if !is_past(state, params) => NOW,
        (true, true) => LEADS_LONG,
        (true, false) => NOW,
        // Users insert into theirs, and global ones pick others.
        (false, false) if of != Of::Head => NOW,
        (false, _) => LEADS_A_WHILE,
    };
    Led { key: asked.key(place), kept: app.kept(kept), revision: state.revision(), until }
}

/// The path and query of a slice's place.
fn location(SliceKey { under, view, since, format }: &SliceKey) -> String {
    let mut location =
        format!("{BASE}/slice/{}/{since}?under={}", view.revision, percent_encode(under));
    match view.of {
        Of::Head => {}
        Of::User(id) => location.push_str(&format!("&user={id}")),
        Of::Global(id) => location.push_str(&format!("&global={id}")),
    }
    if *format != Format::Json {
        location.push_str(&format!("&format={}", format.name()));
    }
    location
}

/// The path as the keys of slices have it: without slashes at its end.
fn normal(under: Option<&str>) -> &str {
    match under.unwrap_or("/").trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

/// `GET /slice/REVISION/SINCE`: the answer, for ever.
pub(super) async fn slice(
    Extract(app): Extract<Arc<App>>,
    Path((revision, since)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Fault> {
    let (Parts { uri, headers, .. }, _) = request.into_parts();
    let answer = match key(&revision, &since, uri.query().unwrap_or_default()) {
        Ok(key) => content(&app, key, &headers).await,
        Err(fault) => Err(fault),
    };
    let kept = [(header::CACHE_CONTROL, HeaderValue::from_static(app.kept(FOREVER)))];
    app.answered(answer.map(|answer| (kept, answer).into_response()))
}

fn key(revision: &str, since: &str, query: &str) -> Result<SliceKey, Fault> {
    let params = query_params(query, &["under", "user", "global", "format"])?;
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

/// The form of a slice.
fn format(params: &Params) -> Result<Format, Fault> {
    match params.format.unwrap_or(Format::Json) {
        format @ (Format::Json | Format::Binary) => Ok(format),
        Format::Arrow if cfg!(feature = "arrow") => Ok(Format::Arrow),
        Format::Arrow => {
            let error = "format=arrow: this server is built without its feature `arrow`";
            Err(Fault::bad(error, "ask for binary, or build it with `--features arrow`"))
        }
        format => {
            let error = format!("format={}: a slice is json, binary or arrow", format.name());
            Err(Fault::bad(error, "ask /api/v1/export for other forms"))
        }
    }
}

/// What is at a place, but for how long it may be kept.
async fn content(app: &Arc<App>, key: SliceKey, headers: &HeaderMap) -> Result<Response, Fault> {
    let format = key.format;
    let made = |app: Arc<App>| {
        let key = key.clone();
        let size = |_: &App, state: &State, key: &SliceKey| size::slice(state, key);
        async move { app.read(key, is_little_content, size, ready).await? }
    };
    let ready = app.fetching(made).await?;
    Ok(answered(app, ready, format, lists(headers)).map(Body::from))
}

/// Whether it is little work to make what is at a place.
fn is_little_content(app: &App, state: &State, key: &SliceKey) -> bool {
    app.slices.has(key) || is_little_slice(state, &key.under, (key.view, key.since), key.format)
}

/// A slice, or that the client has it.
fn answered<'a>(
    app: &App,
    Ready { bytes, digest }: Ready,
    format: Format,
    lists: impl Iterator<Item = &'a str>,
) -> http::Response<Bytes> {
    let is_known = digest.is_known(lists);
    let tag = [(header::ETAG, digest.tag.clone())];
    if is_known {
        app.counts.not_modified.fetch_add(1, Relaxed);
        return quick::answer(StatusCode::NOT_MODIFIED, tag, Bytes::new());
    }
    app.counts.slices.fetch_add(1, Relaxed);
    let kind = match format {
        Format::Binary => SLICE_TYPE,
        Format::Arrow => ARROW_TYPE,
        _ => "application/json",
    };
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    let described = kind.into_iter().chain(digest.fields());
    quick::answer(StatusCode::OK, tag.into_iter().chain(described), bytes)
}

fn ready(app: &App, state: Reading<'_>, key: SliceKey) -> Result<Ready, Fault> {
    state.check_view(key.view, &key.under)?;
    state.check_path(&key.under)?;
    match app.slices.turn(&key) {
        Turn::Make(making) => {
            let made = made(&key, state.shown(&key.under, key.since, key.view)?)?;
            drop(state);
            make(app, &key, made, making)
        }
        other => {
            drop(state);
            of_others(app, &key, other)
        }
    }
}

/// A slice that was made before, or that another thread makes now. The state is not held meanwhile:
/// changes would wait for this one, too.
fn of_others(app: &App, key: &SliceKey, turn: Turn<'_>) -> Result<Ready, Fault> {
    let ready = match turn {
        Turn::Ready(ready) => Some(ready),
        Turn::Wait(awaited) => awaited.wait().clone(),
        Turn::Make(_) => None,
    };
    let Some(ready) = ready else {
        // It failed there; why is found here.
        return self::ready(app, app.state.read(), key.clone());
    };
    app.counts.slices_ready.fetch_add(1, Relaxed);
    Ok(ready)
}

/// A slice as the state made it: in bytes, or to be put into some without the state.
enum Made {
    Bytes(Vec<u8>),
    Answers(Vec<Answer>),
}

impl SliceKey {
    fn head(&self) -> SliceHead {
        SliceHead { revision: self.view.revision, since: self.since }
    }
}

fn made(key: &SliceKey, shown: Vec<Shown<'_>>) -> Result<Made, Refusal> {
    let mut room = ANSWER_BYTES.most as usize;
    for folder in &shown {
        folder.sealed_bytes(&mut |bytes| {
            read_ahead(&bytes[..bytes.len().min(room)]);
            room = room.saturating_sub(bytes.len());
        });
    }
    match key.format {
        Format::Binary => encode_shown(key.head(), &shown).map(Made::Bytes),
        _ => answers(shown).map(Made::Answers),
    }
}

fn make(app: &App, key: &SliceKey, made: Made, making: Making<'_>) -> Result<Ready, Fault> {
    let head = key.head();
    let SliceHead { revision, since } = head;
    let bytes = match (made, key.format) {
        (Made::Bytes(bytes), _) => bytes,
        #[cfg(feature = "arrow")]
        (Made::Answers(folders), Format::Arrow) => encode_arrow(head, &folders).map_err(|why| {
            tracing::error!("{}: {why}", key.under);
            Fault::own()
        })?,
        (Made::Answers(folders), _) => {
            json_bytes(&SliceView { revision, since, folders: &folders })?
        }
    };
    Ok(making.made(Ready::of(app.unsent.hold(bytes)?)))
}
