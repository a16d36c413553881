//! The frame of every page, what it is asked for, and the parts that several pages share.

use axum::http::Uri;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::words::{clipped, date};
use crate::model::State;
use crate::protocol::{BASE, Params};
use crate::server::fault::Fault;

const STYLE: &str = include_str!("style.css");

/// The most tags that a page offers or lists.
pub(super) const TAGS: usize = 50;

/// What a page is asked for.
pub(super) struct Asked {
    pub(super) params: Params,
    /// `after`: what a list goes on behind.
    pub(super) after: Option<String>,
}

impl Asked {
    /// The parameters of a request. A field of a form that was left empty is none.
    pub(super) fn read(uri: &Uri, allowed: &[&str]) -> Result<Self, Fault> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map_err(|_| Fault::bad("the query can't be read", "begin at /"))?;
        let mut pairs = pairs.0;
        pairs.retain(|(_, value)| !value.is_empty());
        let after = pairs.iter().position(|(name, _)| name == "after");
        let after = after.map(|place| pairs.remove(place).1);
        let params = Params::read(&pairs, allowed);
        let params = params.map_err(|why| Fault::bad(why, "go back, and change what was typed"))?;
        Ok(Self { params, after })
    }
}

/// A page with its title and contents.
pub(super) fn framed(title: &str, state: Option<&Footer>, contents: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Without an icon of its own, a browser asks the server for one.
                link rel="icon" href="data:,";
                title { (clipped(title, 120)) " – conditions" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav.top aria-label="Pages" {
                    strong { "Loadline conditions" }
                    a href="/" { "Folders" }
                    a href="/page/at" { "At a time" }
                    a href="/page/tags" { "Tags" }
                    a href={ (BASE) "/openapi.json" } { "API" }
                    a href="/metrics" { "Counters" }
                }
                main { (contents) }
                @if let Some(Footer { revision, made }) = state {
                    footer {
                        @if *revision == 0 { "Nothing has been changed yet." }
                        @else {
                            "Revision " (revision) @if let Some(made) = made { ", " (made) } "."
                        }
                    }
                }
            }
        }
    }
}

/// What a page was made of.
pub(super) struct Footer {
    revision: u64,
    made: Option<String>,
}

impl Footer {
    pub(super) fn of(state: &State) -> Self {
        let revision = state.revision();
        Self { revision, made: state.time_us(revision).and_then(date) }
    }
}

/// What is damaged, or can't be read for another reason, where a page shows all else.
pub(super) fn problem(fault: &Fault) -> Markup {
    html! {
        div.notice.bad role="alert" {
            p { strong { (clipped(&fault.body.error, 400)) } }
            p { (clipped(&fault.body.fix, 400)) }
        }
    }
}

/// The tags by which a form offers to look, those of `path` and above, with the one that is asked.
pub(super) fn choice(state: &State, path: &str, asked: Option<&str>) -> Vec<String> {
    let of = state.tags().filter(|(_, tag)| tag.is_of(path)).map(|(name, _)| name);
    let mut names: Vec<String> = of.take(TAGS).map(str::to_owned).collect();
    if let Some(asked) = asked
        && !names.iter().any(|name| name == asked)
    {
        names.push(asked.to_owned());
    }
    names.retain(|name| name != crate::model::HEAD);
    names
}

/// The field of a form in which a tag is chosen.
pub(super) fn tag_field(names: &[String], asked: Option<&str>) -> Markup {
    html! {
        label { "Tag "
            select name="tag" {
                option value="" { "none: the head" }
                @for name in names {
                    option value=(name) selected[asked == Some(name)] { (clipped(name, 60)) }
                }
            }
        }
    }
}
