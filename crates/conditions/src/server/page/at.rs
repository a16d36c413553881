//! What a tag, or the head, holds at a time, in all folders at and below a path.

use base::grouped;
use maud::{Markup, html};

use super::frame::{Asked, Footer, choice, framed, problem, tag_field};
use super::tree::above;
use super::words::{Asking, clipped, end, many, value};

use crate::model::{Damage, Glance, MAX_TIME, Most, Object, Refusal, State, View};
use crate::protocol::BASE;
use crate::server::app::App;
use crate::server::asked::revision;
use crate::server::fault::Fault;

pub(super) const PARAMETERS: &[&str] = &["under", "t", "tag", "revision", "as_of"];

/// The most folders of a page.
const FOLDERS: usize = 30;

/// The most columns of a folder.
const COLUMNS: usize = 10;

/// The most of a folder: 20 of its first 1,000 channels, 3 records of each, and 1 MiB of payload.
const MOST: Most = Most { channels: 1_000, objects: 20, records: 3, bytes: 1 << 20 };

/// The most channels of all folders for which it is looked up how long nothing changes.
const CHANNELS: usize = 20_000;

/// What is asked, and what was found before the folders themselves are looked at.
struct Found {
    under: String,
    view: View,
    time: u64,
    /// Since when, and until when, all folders show the same.
    around: Option<(u64, u64)>,
    folders: Vec<String>,
    /// How many more folders there are.
    more: u64,
    choice: Vec<String>,
    fault: Option<Fault>,
    footer: Footer,
}

pub(super) fn at(app: &App, asked: &Asked) -> Result<Markup, Fault> {
    let found = read(&app.state.read(), asked)?;
    let asking = Asking::of(&asked.params);
    let mut sections = Vec::new();
    for path in &found.folders {
        // Changes come in between; what is shown of the view's revision stays the same.
        let glance = app.state.read().glance(path, found.time, found.view, MOST);
        if let Err(refusal @ Refusal::Damaged(Damage { elsewhere: Some(_), .. })) = glance {
            return Err(refusal.into());
        }
        sections.push(section(path, glance, found.time, &asking));
    }
    Ok(drawn(&found, asked, &asking, &sections))
}

fn read(state: &State, asked: &Asked) -> Result<Found, Fault> {
    let params = &asked.params;
    let under = match params.under.as_deref().unwrap_or("/").trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    state.check_path(under)?;
    let view = state.view(params.tag.as_deref(), revision(state, params)?, under)?;
    let mut fault = None;
    let mut around = |time| {
        let found = state.around(under, time, view, CHANNELS);
        found.unwrap_or_else(|refusal: Refusal| {
            fault = Some(Fault::from(refusal));
            None
        })
    };
    // Without a time: what is shown at the end of all times, from where on it is so.
    let shown = around(params.t.unwrap_or(MAX_TIME - 1).min(MAX_TIME - 1));
    let time = params.t.unwrap_or(shown.map_or(0, |(since, _)| since));
    let behind = |path: &&str| asked.after.as_deref().is_none_or(|after| *path > after);
    let mut folders = state.under(under).map(|folder| folder.path()).filter(behind);
    let first: Vec<String> = folders.by_ref().take(FOLDERS).map(str::to_owned).collect();
    Ok(Found {
        under: under.to_owned(),
        view,
        time,
        around: shown,
        folders: first,
        more: folders.count() as u64,
        choice: choice(state, under, params.tag.as_deref()),
        fault,
        footer: Footer::of(state),
    })
}

fn drawn(found: &Found, asked: &Asked, asking: &Asking, sections: &[Markup]) -> Markup {
    let Found { under, time, .. } = found;
    let name = if under == "/" { "All folders" } else { under.as_str() };
    let title = format!("{name} at {time}");
    let at = time.to_string();
    let pairs = [("t", Some(at.as_str())), ("under", Some(under.as_str()))];
    let contents = html! {
        @if under != "/" { (above(under)) }
        h1 { bdi { (clipped(name, 300)) } " at " (time) }
        p.dim {
            "As " (asking.words()) " shows it at revision " (found.view.revision)
            @match found.around {
                Some((since, MAX_TIME..)) => { ": the same from " (since) " on." }
                Some((since, until)) => { ": the same from " (since) " until " (until) "." }
                None => ".",
            }
        }
        (steps(found, asking))
        (form(found, asked, asking))
        @if let Some(fault) = &found.fault { (problem(fault)) }
        @if sections.is_empty() {
            div.notice { p { "There is no folder here." } }
        }
        @for section in sections { (section) }
        @if found.more > 0 {
            @let last = found.folders.last().map(String::as_str);
            p { a href=(asking.address("/page/at", &[&pairs[..], &[("after", last)]].concat())) {
                (many(found.more, "more folder"))
            } }
        }
        p.dim {
            a href=(asking.address(&format!("{BASE}/slice"), &pairs)) { "All of it, as JSON" }
        }
    };
    framed(&title, Some(&found.footer), &contents)
}

/// The ways to the times before and after.
fn steps(found: &Found, asking: &Asking) -> Markup {
    let Some((since, until)) = found.around else { return Markup::default() };
    let link = |time: Option<u64>, words: &str| {
        let time = time.map(|time| time.to_string());
        let pairs = [("under", Some(found.under.as_str())), ("t", time.as_deref())];
        html! { a href=(asking.address("/page/at", &pairs)) { (words) } }
    };
    html! {
        nav.steps aria-label="Times" {
            @if let Some(before) = since.checked_sub(1) { (link(Some(before), "◀ before that")) }
            @if until < MAX_TIME { (link(Some(until), "after that ▶")) }
            (link(None, "newest"))
        }
    }
}

fn form(found: &Found, asked: &Asked, asking: &Asking) -> Markup {
    html! {
        form.asked action="/page/at" {
            @for (name, value) in asking.hidden() {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            label { "Folder or set " input name="under" value=(found.under); }
            label { "At time " input name="t" inputmode="numeric" value=(found.time); }
            (tag_field(&found.choice, asked.params.tag.as_deref()))
            button { "Show" }
        }
    }
}

/// What one folder shows.
fn section(
    path: &str,
    glance: Result<Option<Glance>, Refusal>,
    time: u64,
    asking: &Asking,
) -> Markup {
    let time = time.to_string();
    let pairs = [("folder", Some(path)), ("t", Some(time.as_str()))];
    let all = asking.address(&format!("{BASE}/find"), &pairs);
    html! {
        section {
            h2 { a href=(asking.address("/page/folder", &[("folder", Some(path))])) {
                bdi { (clipped(path, 200)) }
            } }
            @match glance {
                Err(refusal) => (problem(&refusal.into())),
                Ok(None) => p.dim { "Nothing is picked for it, or it was not made yet." },
                Ok(Some(glance)) => {
                    @if !glance.objects.is_empty() { (objects(&glance, path)) }
                    @else if glance.has_more {
                        p.dim {
                            "Nothing at this time in its first "
                            (many(MOST.channels as u64, "channel")) "."
                        }
                    } @else {
                        p.dim { "Nothing at this time." }
                    }
                    @if glance.has_more || glance.answer.is_none() {
                        p.dim {
                            @if glance.has_more { "There is more. " }
                            @if glance.answer.is_none() { "The values are too large for a page. " }
                            a href=(all) { "All channels and values, as JSON" }
                        }
                    }
                }
            }
        }
    }
}

fn objects(glance: &Glance, path: &str) -> Markup {
    let columns = glance.answer.as_ref().map_or(&[][..], |answer| &answer.columns);
    let shown = &columns[..columns.len().min(COLUMNS)];
    let firsts = glance.objects.iter().scan(0, |row, object| {
        let first = *row;
        *row += object.records.min(MOST.records) as usize;
        Some((object, first))
    });
    html! {
        @let label = format!("Values of {}", clipped(path, 60));
        div.wide tabindex="0" role="region" aria-label=(label) { table {
            thead { tr {
                th.n scope="col" { "channel" }
                th.n scope="col" { "since" }
                th.n scope="col" { "until" }
                @for column in shown {
                    th.n[column.kind.is_number()] scope="col" {
                        bdi { (clipped(&column.name, 40)) }
                    }
                }
                @if columns.len() > COLUMNS {
                    th scope="col" { (grouped((columns.len() - COLUMNS) as u64)) " more" }
                }
            } }
            tbody { @for (object, first) in firsts { (rows(glance, object, first)) } }
        } }
    }
}

/// The first records of an object.
fn rows(glance: &Glance, object: &Object, first: usize) -> Markup {
    let Object { channel, since, until, records } = object;
    let count = (*records).min(MOST.records) as usize;
    let left_out = u64::from(*records) - count as u64;
    let width = glance.answer.as_ref().map_or(0, |answer| answer.columns.len().min(COLUMNS + 1));
    html! {
        @for number in 0..count.max(1) {
            tr {
                @if number == 0 {
                    th.n scope="row" { (channel) } td.n { (since) } td.n { (end(*until)) }
                } @else {
                    td colspan="3" {}
                }
                @if let Some(answer) = glance.answer.as_ref().filter(|_| number < count) {
                    @for cells in answer.payload.columns.iter().take(COLUMNS) {
                        td.n[cells.kind().is_number()] {
                            @match value(&cells.value(first + number)) {
                                Some(text) => bdi { (text) },
                                None => span.dim { "null" },
                            }
                        }
                    }
                }
            }
        }
        @if left_out > 0 {
            tr {
                td colspan="3" {}
                td.dim colspan=(width.max(1)) { (many(left_out, "more record")) }
            }
        }
    }
}
