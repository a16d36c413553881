//! What the parameters of a question mean: its revision, and its range of times.

use axum::http::StatusCode;
use jiff::Timestamp;

use super::fault::Fault;
use crate::model::{MAX_TIME, Revision, State, Version, View};
use crate::protocol::Params;

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
        (None, Some(time)) => dated(state, time).map(Some),
        (revision, None) => Ok(revision),
    }
}

/// How far a client's clock may be ahead.
const AHEAD_US: i64 = 60_000_000;

/// The last revision at a date that has come: what is shown at another is not known yet.
pub(super) fn dated(state: &State, time_us: i64) -> Result<Revision, Fault> {
    let now = Timestamp::now();
    if time_us <= now.as_microsecond().saturating_add(AHEAD_US) {
        return Ok(state.revision_at(time_us));
    }
    let written = |time_us| Timestamp::from_microsecond(time_us).unwrap_or_default().to_string();
    let last = state.time_us(state.revision()).map_or("never".to_owned(), written);
    let date = written(time_us);
    let error = format!("{date} is in the future: it is {now}, and the last change was {last}");
    Err(Fault::new(StatusCode::NOT_FOUND, error, "leave as_of out for what is shown now"))
}

pub(super) fn version(state: &State, params: &Params, path: &str) -> Result<Version, Fault> {
    let asked = revision(state, params)?;
    let version = state.version(params.tag.as_deref(), asked, path)?;
    // Of a tag it shows nothing.
    let made = state.folder(path)?.made();
    if params.tag.is_none() && version.revision < made {
        let error = format!("folder {path:?} is there since revision {made}");
        let fix = format!("ask for revision {made} or a later one");
        return Err(Fault::new(StatusCode::NOT_FOUND, error, &fix));
    }
    Ok(version)
}

/// The views that are compared of what is at and below a path.
pub(super) fn compared(state: &State, params: &Params, under: &str) -> Result<(View, View), Fault> {
    let before = state.view(params.tag.as_deref(), revision(state, params)?, under)?;
    let to_revision = one_revision(state, params.to_revision, params.to_as_of_us)?;
    Ok((before, state.view(params.to_tag.as_deref(), to_revision, under)?))
}

pub(super) fn range(params: &Params) -> Result<(u64, u64), Fault> {
    let range = (params.since.unwrap_or(0), params.until.unwrap_or(MAX_TIME));
    match range.0 <= range.1 {
        true => Ok(range),
        false => {
            let why = format!("since {} is after until {}", range.0, range.1);
            Err(Fault::bad(why, "name the earlier time first"))
        }
    }
}
