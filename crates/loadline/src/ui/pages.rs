//! Which page or JSON is at which address, and what refuses one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as InPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use findings::{ChartData, History, Progress, Question, Summary};
use ledger::{Ledger, LedgerError, RunId, RunKind, RunState};
use report::Listed;
use serde_json::Value;

use super::site::Site;
use crate::storage::Storage;

pub(super) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/runs.json", get(list_as_json))
        .route("/runs/{run}", get(one_run))
        .route("/runs/{run}/live", get(live))
        .route("/runs/{run}/live.json", get(live_as_json))
        .route("/runs/{run}/points/{point}", get(one_point))
        .route("/history", get(history))
        .route("/history.json", get(history_as_json))
        .fallback(async || Refused(StatusCode::NOT_FOUND, "There is no such page.".to_owned()))
        .with_state(site)
}

/// A page or JSON, as text.
enum Made {
    Page(String),
    Json(String),
}

impl IntoResponse for Made {
    fn into_response(self) -> Response {
        let (kind, text) = match self {
            Self::Page(text) => ("text/html; charset=utf-8", text),
            Self::Json(text) => ("application/json", text),
        };
        ([(header::CONTENT_TYPE, kind)], text).into_response()
    }
}

/// Why there is no page, as a text for the user.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let title = self.0.canonical_reason().unwrap_or("Refused");
        (self.0, Made::Page(report::notice(title, &self.1))).into_response()
    }
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        let status = match error {
            LedgerError::NoSuchRun(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, format!("{:#}.", anyhow::Error::from(error)))
    }
}

/// Makes an answer on a thread that may block.
async fn made(
    site: Arc<Site>,
    make: impl FnOnce(&Ledger, &Path) -> Result<Made, Refused> + Send + 'static,
) -> Result<Made, Refused> {
    let Ok(turn) = site.requests.clone().try_acquire_owned() else {
        let words = "Too many pages are being made; ask again.".to_owned();
        return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, words));
    };
    let making = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        // Opened anew for each, so that it may be replaced meanwhile.
        make(&Ledger::open_read_only(&site.ledger)?, &site.ledger)
    });
    making.await.unwrap_or_else(|_| {
        let words = "This page could not be made; the terminal says why.".to_owned();
        Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, words))
    })
}

type Asked = Query<HashMap<String, String>>;
type Answer = Result<Made, Refused>;

async fn list(State(site): State<Arc<Site>>, Query(asked): Asked) -> Answer {
    let skipped = asked.get("skip").map_or(Ok(0), |text| text.parse());
    let skipped = skipped.map_err(|_| bad_request("skip is a number of runs."))?;
    let kind = match asked.get("kind") {
        None => None,
        Some(word) => Some(kind(word)?),
    };
    made(site, move |ledger, path| {
        let listed = Listed { kind, skipped };
        let runs = crate::ledgers::concluded_runs(ledger)?;
        Ok(Made::Page(report::runs(&path.display().to_string(), &runs, listed)))
    })
    .await
}

fn kind(word: &str) -> Result<RunKind, Refused> {
    let found = RunKind::of_word(word);
    found.ok_or_else(|| bad_request("kind is sweep, comparison, ladder or capacity."))
}

async fn list_as_json(State(site): State<Arc<Site>>) -> Answer {
    made(site, |ledger, _| Ok(said(&crate::ledgers::list_as_json(&ledger.runs()?)))).await
}

/// `12` is a page, `12.json` is JSON.
async fn one_run(State(site): State<Arc<Site>>, InPath(name): InPath<String>) -> Answer {
    let (number, as_json) = plain_or_json(&name);
    let run = run_of(number)?;
    made(site, move |ledger, _| {
        if as_json {
            return Ok(said(&report::json(&Summary::of(ledger.run_view(run)?)?)));
        }
        let (summary, data) = crate::report::page_of(ledger, run)?;
        Ok(Made::Page(report::run_served(&summary, &data)))
    })
    .await
}

async fn live(State(site): State<Arc<Site>>, InPath(name): InPath<String>) -> Answer {
    let run = run_of(&name)?;
    let page = move |ledger: &Ledger, path: &Path| {
        let progress = Progress::of(ledger.so_far(run)?);
        let is_running = progress.so_far.run.state == RunState::Running;
        let now = is_running.then(|| crate::live::published(&Storage::named(path))).flatten();
        Ok(Made::Page(report::live(&progress, now.as_ref())))
    };
    made(site, page).await
}

async fn live_as_json(State(site): State<Arc<Site>>, InPath(name): InPath<String>) -> Answer {
    let run = run_of(&name)?;
    made(site, move |ledger, _| {
        Ok(said(&report::progress_json(&Progress::of(ledger.so_far(run)?))))
    })
    .await
}

/// `3` is the page of the third point, `3.json` its JSON.
async fn one_point(
    State(site): State<Arc<Site>>,
    InPath((run, name)): InPath<(String, String)>,
) -> Answer {
    let run = run_of(&run)?;
    let (number, as_json) = plain_or_json(&name);
    let none = || Refused(StatusCode::NOT_FOUND, "There is no such point of this run.".to_owned());
    let place: u32 = number.parse().map_err(|_| none())?;
    let place = place.checked_sub(1).ok_or_else(none)?;
    made(site, move |ledger, _| {
        let view = ledger.run_view_of(run, place..=place)?;
        let index = place as usize;
        if index >= view.points.len() {
            return Err(none());
        }
        if as_json {
            let json = report::point_json(&Summary::of(view)?, index);
            return json.map(|json| said(&json)).ok_or_else(none);
        }
        let data = ChartData::read(ledger, &view, index..=index)?;
        Ok(Made::Page(report::trials(&Summary::of(view)?, &data, index)))
    })
    .await
}

async fn history(State(site): State<Arc<Site>>, Query(asked): Asked) -> Answer {
    made(site, move |ledger, _| match asked.contains_key("suite") {
        false => Ok(Made::Page(report::suites(&ledger.runs()?))),
        true => Ok(Made::Page(report::history_page(&history_asked(ledger, &asked)?))),
    })
    .await
}

async fn history_as_json(State(site): State<Arc<Site>>, Query(asked): Asked) -> Answer {
    made(site, move |ledger, _| Ok(said(&report::history_json(&history_asked(ledger, &asked)?))))
        .await
}

fn history_asked(ledger: &Ledger, asked: &HashMap<String, String>) -> Result<History, Refused> {
    let of = |name: &str| asked.get(name).filter(|text| !text.is_empty()).cloned();
    let title = of("suite").ok_or_else(|| bad_request("Say which suite, by its title."))?;
    let question = Question {
        title,
        target: of("target"),
        metric: of("metric"),
        since: None,
        hunt: judge::Hunt::default(),
    };
    let words = "There is no run of this suite, or no such metric.".to_owned();
    History::of(ledger, &question)?.ok_or(Refused(StatusCode::NOT_FOUND, words))
}

fn said(json: &Value) -> Made {
    Made::Json(format!("{json:#}\n"))
}

fn plain_or_json(name: &str) -> (&str, bool) {
    name.strip_suffix(".json").map_or((name, false), |number| (number, true))
}

fn run_of(text: &str) -> Result<RunId, Refused> {
    let words = || format!("\"{text}\" is no number of a run.");
    text.parse::<i64>().map(RunId::from).map_err(|_| Refused(StatusCode::NOT_FOUND, words()))
}

fn bad_request(words: &str) -> Refused {
    Refused(StatusCode::BAD_REQUEST, words.to_owned())
}
