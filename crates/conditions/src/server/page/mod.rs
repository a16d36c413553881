//! Pages for people: the tree of folders, what the channels of a folder show over time, and what a
//! tag holds at a time. Without scripts, and of a bounded size whatever is stored: a page has some
//! of each thing, says what it leaves out, and leads to it. Control plane.

mod at;
mod folder;
mod frame;
mod picture;
mod tags;
mod tree;
mod words;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Router;
use axum::extract::State as Extract;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{Markup, html};

use super::app::App;
use super::fault::Fault;
use frame::{Asked, framed, problem};

/// The pages. `/` is taken exactly: NoPayloadDB's files lie at other places below it.
pub(super) fn router() -> Router<Arc<App>> {
    let none = || Fault::new(StatusCode::NOT_FOUND, "there is no such page", "begin at /");
    Router::new()
        .route("/", page(&[], tree::tree))
        .route("/page/set", page(&["under"], tree::tree))
        .route("/page/folder", page(folder::PARAMETERS, folder::folder))
        .route("/page/at", page(at::PARAMETERS, at::at))
        .route("/page/tags", page(&["under"], tags::tags))
        .route("/page/{*other}", get(async move || refused(&none())))
}

/// The handler of a page that takes these parameters.
fn page(
    allowed: &'static [&'static str],
    draw: fn(&App, &Asked) -> Result<Markup, Fault>,
) -> MethodRouter<Arc<App>> {
    get(async move |Extract(app): Extract<Arc<App>>, uri: Uri| {
        let drawn = match Asked::read(&uri, allowed) {
            Ok(asked) => {
                let asked = Arc::new(asked);
                let drawn = app.fetching(|app| {
                    let asked = Arc::clone(&asked);
                    async move { app.blocking(move |app| draw(app, &asked)).await }
                });
                drawn.await
            }
            Err(fault) => Err(fault),
        };
        app.counts.reads.fetch_add(1, Relaxed);
        let held = match drawn {
            Ok(page) => {
                let held = app.unsent.hold(page.into_string().into());
                held.map(|page| sent(StatusCode::OK, page)).map_err(Fault::from)
            }
            Err(fault) => Err(fault),
        };
        held.unwrap_or_else(|fault| {
            app.counts.refused.fetch_add(1, Relaxed);
            refused(&fault)
        })
    })
}

fn sent(status: StatusCode, page: impl IntoResponse) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// A refusal as a page.
fn refused(fault: &Fault) -> Response {
    let contents = html! {
        h1 { "This page can't be shown" }
        (problem(fault))
        p { a href="/" { "All folders" } }
    };
    sent(fault.status, framed("Refused", None, &contents).into_string())
}
