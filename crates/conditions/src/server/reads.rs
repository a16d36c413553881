//! Questions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Extract};
use axum::http::request::Parts;
use axum::http::{self, HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::routing::{MethodRouter, get, post};
use serde_json::json;
use service::Question;

use super::app::{App, needed, params, query_params};
use super::asked::{compared, range, revision, version};
use super::fault::{Fault, json_bytes};
use super::known::{Digest, FOREVER, NOW, lists};
use super::shared::Reading;
use super::size::{self, Work};
use super::writes::form;
use super::{little, quick};
use crate::model::{ANSWER, Folder, HEAD, Refusal, Selection, State, Version};
use crate::protocol::{
    AnswerView, ChannelView, ChannelsView, DiffView, ExplainView, FolderView, Params, REVISION,
    ShownView, TagView, condition,
};

/// The parameters of what a time shows.
pub(super) const FIND: &[&str] =
    &["folder", "t", "channels", "names", "where", "tag", "revision", "as_of"];

/// What a question is answered with, in JSON. The state is dropped as soon as it is not needed.
type Answer = fn(Reading<'_>, &Params) -> Result<Vec<u8>, Fault>;

/// A question's answer, how much work that is, and whether it is the same for ever where it is of a
/// revision.
#[derive(Clone, Copy)]
struct Answered {
    answer: Answer,
    work: Work,
    lasts: bool,
}

/// The handler of a question that takes these parameters.
pub(super) fn question(
    allowed: &'static [&'static str],
    answer: Answer,
    work: Work,
) -> MethodRouter<Arc<App>> {
    handler(allowed, Answered { answer, work, lasts: false })
}

/// The handler of one whose answer is the same for ever where it is of a revision.
pub(super) fn lasting(
    allowed: &'static [&'static str],
    answer: Answer,
    work: Work,
) -> MethodRouter<Arc<App>> {
    handler(allowed, Answered { answer, work, lasts: true })
}

fn handler(allowed: &'static [&'static str], question: Answered) -> MethodRouter<Arc<App>> {
    let asked = by_query(allowed, question);
    match allowed.contains(&"channels") {
        true => asked.merge(by_form(allowed, question)),
        false => asked,
    }
}

/// The handler of a question whose parameters are a body: more of them than a request's head has
/// room for, such as any number of ranges of channels.
fn by_form(allowed: &'static [&'static str], question: Answered) -> MethodRouter<Arc<App>> {
    // No cache answers what was sent in a body (RFC 9110, 9.3.3).
    let question = Answered { lasts: false, ..question };
    post(async move |Extract(app): Extract<Arc<App>>, request: Request| {
        let read = match form(&app, request).await {
            // Room for the parameters, which are kept until they are answered.
            Ok((form, _room)) => match app.blocking(move |_| query_params(&form, allowed)).await {
                Ok(params) => question.read(&app, params, HeaderMap::new(), true).await,
                Err(fault) => Err(fault),
            },
            Err(fault) => Err(fault),
        };
        app.counts.reads.fetch_add(1, Relaxed);
        app.answered(read.map(|answer| answer.map(Body::from)))
    })
}

fn by_query(allowed: &'static [&'static str], question: Answered) -> MethodRouter<Arc<App>> {
    get(async move |Extract(app): Extract<Arc<App>>, request: Request| {
        let (Parts { uri, headers, .. }, _) = request.into_parts();
        let read = match params(&uri, allowed) {
            Ok(params) => question.read(&app, params, headers, false).await,
            Err(fault) => Err(fault),
        };
        app.counts.reads.fetch_add(1, Relaxed);
        app.answered(read.map(|answer| answer.map(Body::from)))
    })
}

/// What is answered to a little question of what a time shows.
pub(super) fn quick(
    app: &App,
    state: Reading<'_>,
    asked: &Question<'_>,
) -> Option<http::Response<Bytes>> {
    let params = query_params(asked.query, FIND).ok()?;
    if !little::find(&state, &params) {
        return None;
    }
    let found = Answered { answer: find, work: size::FIND, lasts: true };
    let answer = found.send(app, state, &params, quick::lists(asked)).ok()?;
    app.counts.reads.fetch_add(1, Relaxed);
    Some(answer)
}

impl Answered {
    /// Reads it; what was sent in a body may be much to look through itself.
    async fn read(
        self,
        app: &Arc<App>,
        params: Params,
        headers: HeaderMap,
        is_body: bool,
    ) -> Result<http::Response<Bytes>, Fault> {
        let asked = Arc::new((params, headers));
        let is_little = move |_: &App, state: &State, asked: &Arc<(Params, _)>| {
            !is_body && (self.work.is_little)(state, &asked.0)
        };
        let size = move |_: &App, state: &State, asked: &Arc<(Params, _)>| {
            (self.work.size)(state, &asked.0)
        };
        let work = move |app: &App, state: Reading<'_>, asked: Arc<(Params, HeaderMap)>| {
            self.send(app, state, &asked.0, lists(&asked.1))
        };
        let answer = |app: Arc<App>| {
            let asked = Arc::clone(&asked);
            async move { app.read(asked, is_little, size, work).await? }
        };
        app.fetching(answer).await
    }

    fn send<'a>(
        self,
        app: &App,
        state: Reading<'_>,
        params: &Params,
        lists: impl Iterator<Item = &'a str>,
    ) -> Result<http::Response<Bytes>, Fault> {
        let revision = HeaderValue::from(state.revision());
        let kept = if self.lasts && is_for_ever(&state, params) { FOREVER } else { NOW };
        let kept = app.kept(kept);
        let bytes = (self.answer)(state, params)?;
        let digest = Digest::of(&bytes);
        let is_known = digest.is_known(lists);
        let kept = [
            (HeaderName::from_static(REVISION), revision),
            (header::CACHE_CONTROL, HeaderValue::from_static(kept)),
            (header::ETAG, digest.tag.clone()),
        ];
        if is_known {
            app.counts.not_modified.fetch_add(1, Relaxed);
            return Ok(quick::answer(StatusCode::NOT_MODIFIED, kept, Bytes::new()));
        }
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let headers = kept.into_iter().chain(kind).chain(digest.fields());
        Ok(quick::answer(StatusCode::OK, headers, app.unsent.hold(bytes)?))
    }
}

/// Whether what is asked for can't change any more: what the head showed at a revision, or on a
/// date before the last change. Tags may be deleted and made anew, and names given to others.
fn is_for_ever(state: &State, params: &Params) -> bool {
    let is_dated = params.revision.is_some() || params.as_of_us.is_some();
    let is_of_head = params.tag.as_deref().is_none_or(|tag| tag == HEAD);
    is_dated && is_of_head && params.selection.names.is_empty() && is_past(state, params)
}

/// Whether no change can come any more at or before the date that is asked for.
pub(super) fn is_past(state: &State, params: &Params) -> bool {
    let last_us = state.time_us(state.revision());
    params.as_of_us.is_none_or(|date| last_us.is_some_and(|last| date < last))
}

pub(super) fn folders(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let under = params.under.as_deref().unwrap_or("/");
    state.check_path(under)?;
    let folders: Vec<_> = state.under(under).map(FolderView::of).collect();
    let sets: Vec<_> = state
        .sets(under)
        .map(|(path, description)| {
            let path = if path.is_empty() { "/" } else { path };
            json!({ "path": path, "description": description })
        })
        .collect();
    Ok(json_bytes(&json!({ "folders": folders, "sets": sets }))?)
}

pub(super) fn channels(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let folder = state.folder(&needed(params.folder.clone(), "folder")?)?;
    let view = |(channel, name)| ChannelView { channel, name };
    let channels = folder.channels().map(view).collect();
    Ok(json_bytes(&ChannelsView { channels })?)
}

pub(super) fn tags(state: Reading<'_>, _: &Params) -> Result<Vec<u8>, Fault> {
    let tags: Vec<_> = state.tags().map(|(name, tag)| TagView::of(&state, name, tag)).collect();
    Ok(json_bytes(&json!({ "tags": tags }))?)
}

/// Which channels and records of a folder are asked for.
fn selection(folder: &Folder, params: &Params, version: Version) -> Result<Selection, Fault> {
    let columns = folder.columns_at(version.revision);
    let read = |written: &String| {
        let fix = "docs/conditions.md says what conditions there are";
        condition(written, columns)
            .map_err(|why| Fault::bad(format!("where={written}: {why}"), fix))
    };
    let conditions = params.conditions.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Selection { conditions, ..params.selection.clone() })
}

pub(super) fn find(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let time = needed(params.t, "t")?;
    let (folder, version) = (state.folder(&path)?, version(&state, params, &path)?);
    let answer = folder.find(time, &selection(folder, params, version)?, version)?;
    drop(state);
    Ok(json_bytes(&AnswerView(&answer))?)
}

pub(super) fn browse(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let (folder, version) = (state.folder(&path)?, version(&state, params, &path)?);
    let of = selection(folder, params, version)?;
    let answer = folder.browse(range(params)?, &of, params.order, version)?;
    drop(state);
    Ok(json_bytes(&AnswerView(&answer))?)
}

pub(super) fn count(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let (folder, version) = (state.folder(&path)?, version(&state, params, &path)?);
    let of = selection(folder, params, version)?;
    let count = folder.count(range(params)?, &of, version)?;
    Ok(json_bytes(&json!({ "objects": count }))?)
}

pub(super) fn diff(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let under = params.under.as_deref().unwrap_or("/");
    state.check_path(under)?;
    let views = compared(&state, params, under)?;
    let diff = state.diff(under, range(params)?, &params.selection, views);
    let diff = diff.map_err(|refusal| {
        let is_long = matches!(refusal, Refusal::TooMany(_, _, what) if what == ANSWER.what);
        let mut fault = Fault::from(refusal);
        if is_long {
            let fix = "ask for a part of the times, with since and until (--since, --until), \
                       or for fewer channels";
            fix.clone_into(&mut fault.body.fix);
        }
        fault
    })?;
    drop(state);
    let folders: Vec<_> = diff.iter().map(DiffView::of).collect();
    Ok(json_bytes(&json!({ "folders": folders }))?)
}

pub(super) fn explain(state: Reading<'_>, params: &Params) -> Result<Vec<u8>, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let time = needed(params.t, "t")?;
    let version = version(&state, params, &path)?;
    let view = state.view(params.tag.as_deref(), revision(&state, params)?, &path)?;
    let picked = state.picked(view, &path)?;
    let folder = state.folder(&path)?;
    let mut channels = Vec::new();
    for channel in folder.channels_of(&params.selection)? {
        let shown = state.explain(&path, channel, time, version)?;
        channels.push(ShownView { channel, shown });
    }
    Ok(json_bytes(&ExplainView { folder: &path, picked, channels })?)
}
