//! Questions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State as Extract;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::json;

use super::app::{App, needed, params};
use super::fault::{Fault, json};
use crate::model::{Folder, MAX_TIME, Refusal, Revision, Selection, State, Version};
use crate::protocol::{
    AnswerView, ChannelView, ChannelsView, DiffView, ExplainView, FolderView, Params, REVISION,
    ShownView, TagView, condition,
};

/// The handler of a question that takes these parameters.
pub(super) fn question(
    allowed: &'static [&'static str],
    answer: fn(&State, &Params) -> Result<Response, Fault>,
) -> MethodRouter<Arc<App>> {
    get(async move |Extract(app): Extract<Arc<App>>, uri: Uri| {
        let read = match params(&uri, allowed) {
            Ok(params) => {
                let work = move |app: &App| {
                    let state = app.state.read();
                    let revision = [(REVISION, state.revision().to_string())];
                    Ok((revision, answer(&state, &params)?).into_response())
                };
                match app.blocking(work).await {
                    Ok(answer) => app.held(answer).await,
                    Err(fault) => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        };
        app.counts.reads.fetch_add(1, Relaxed);
        app.answered(read)
    })
}

/// The revision that is asked for, if one is.
pub(super) fn revision(state: &State, params: &Params) -> Result<Option<Revision>, Fault> {
    one_revision(state, params.revision, params.as_of_us)
}

fn one_revision(
    state: &State,
    revision: Option<Revision>,
    as_of_us: Option<i64>,
) -> Result<Option<Revision>, Fault> {
    match (revision, as_of_us) {
        (Some(_), Some(_)) => {
            Err(Fault::bad("both revision and as_of are given", "ask for one of them"))
        }
        (revision, as_of_us) => Ok(revision.or(as_of_us.map(|time| state.revision_at(time)))),
    }
}

fn version(state: &State, params: &Params, path: &str) -> Result<Version, Fault> {
    let revision = revision(state, params)?;
    Ok(state.version(params.tag.as_deref(), revision, path)?)
}

pub(super) fn folders(state: &State, params: &Params) -> Result<Response, Fault> {
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
    Ok(json(StatusCode::OK, &json!({ "folders": folders, "sets": sets })))
}

pub(super) fn channels(state: &State, params: &Params) -> Result<Response, Fault> {
    let folder = state.folder(&needed(params.folder.clone(), "folder")?)?;
    let view = |(channel, name)| ChannelView { channel, name };
    let channels = folder.channels().map(view).collect();
    Ok(json(StatusCode::OK, &ChannelsView { channels }))
}

pub(super) fn tags(state: &State, _: &Params) -> Result<Response, Fault> {
    let tags: Vec<_> = state.tags().map(|(name, tag)| TagView::of(state, name, tag)).collect();
    Ok(json(StatusCode::OK, &json!({ "tags": tags })))
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

pub(super) fn find(state: &State, params: &Params) -> Result<Response, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let time = needed(params.t, "t")?;
    let (folder, version) = (state.folder(&path)?, version(state, params, &path)?);
    let answer = folder.find(time, &selection(folder, params, version)?, version)?;
    Ok(json(StatusCode::OK, &AnswerView(&answer)))
}

pub(super) fn range(params: &Params) -> Result<(u64, u64), Fault> {
    let range = (params.since.unwrap_or(0), params.until.unwrap_or(MAX_TIME));
    match range.0 <= range.1 {
        true => Ok(range),
        false => Err(Refusal::BadInterval(range.0, range.1).into()),
    }
}

pub(super) fn browse(state: &State, params: &Params) -> Result<Response, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let (folder, version) = (state.folder(&path)?, version(state, params, &path)?);
    let of = selection(folder, params, version)?;
    let answer = folder.browse(range(params)?, &of, params.order, version)?;
    Ok(json(StatusCode::OK, &AnswerView(&answer)))
}

pub(super) fn count(state: &State, params: &Params) -> Result<Response, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let (folder, version) = (state.folder(&path)?, version(state, params, &path)?);
    let of = selection(folder, params, version)?;
    let count = folder.count(range(params)?, &of, version)?;
    Ok(json(StatusCode::OK, &json!({ "objects": count })))
}

pub(super) fn diff(state: &State, params: &Params) -> Result<Response, Fault> {
    let under = params.under.as_deref().unwrap_or("/");
    state.check_path(under)?;
    let before = state.view(params.tag.as_deref(), revision(state, params)?, under)?;
    let to_revision = one_revision(state, params.to_revision, params.to_as_of_us)?;
    let after = state.view(params.to_tag.as_deref(), to_revision, under)?;
    let diff = state.diff(under, range(params)?, &params.selection, (before, after))?;
    let folders: Vec<_> = diff.iter().map(DiffView::of).collect();
    Ok(json(StatusCode::OK, &json!({ "folders": folders })))
}

pub(super) fn explain(state: &State, params: &Params) -> Result<Response, Fault> {
    let path = needed(params.folder.clone(), "folder")?;
    let time = needed(params.t, "t")?;
    let version = version(state, params, &path)?;
    let folder = state.folder(&path)?;
    let mut channels = Vec::new();
    for channel in folder.channels_of(&params.selection)? {
        let shown = state.explain(&path, channel, time, version)?;
        channels.push(ShownView { channel, shown });
    }
    Ok(json(StatusCode::OK, &ExplainView { folder: &path, channels }))
}
