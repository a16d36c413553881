//! One folder: its columns, its tags, and what its channels show over time.

use base::grouped;
use maud::{Markup, html};

use super::frame::{Asked, Footer, choice, framed, problem, tag_field};
use super::picture::{LANES, Lane, Picture, bars_of_one};
use super::tags;
use super::tree::above;
use super::words::{Asking, address, clipped, many};
use crate::model::{
    ColumnSpec, Folder, MAX_TIME, Newest, Numbers, Refusal, State, Version, Versioning,
};
use crate::protocol::BASE;
use crate::server::app::{App, needed};
use crate::server::asked::{range, revision};
use crate::server::fault::Fault;

pub(super) const PARAMETERS: &[&str] =
    &["folder", "since", "until", "channels", "tag", "revision", "as_of"];

/// About how many of a channel's last intervals are drawn where no times are asked for.
const INTERVALS: usize = 24;

/// The most columns, and tags, that are listed.
const COLUMNS: usize = 100;
const TAGS: usize = 20;

/// What a page shows of a folder.
struct Shown {
    path: String,
    description: String,
    versioning: Versioning,
    columns: Vec<ColumnSpec>,
    /// Channels, objects and records.
    sizes: [u64; 3],
    tags: (Vec<tags::Line>, u64),
    choice: Vec<String>,
    lanes: Vec<Lane>,
    /// Channels that are not drawn, and the first of them.
    more: Option<(u64, u32)>,
    range: (u64, u64),
    faults: Vec<Fault>,
    footer: Footer,
}

pub(super) fn folder(app: &App, asked: &Asked) -> Result<Markup, Fault> {
    let path = needed(asked.params.folder.clone(), "folder")?;
    let shown = read(&app.state.read(), &path, asked)?;
    Ok(drawn(&shown, asked))
}

fn read(state: &State, path: &str, asked: &Asked) -> Result<Shown, Fault> {
    let params = &asked.params;
    // Refuses a range that is none.
    range(params)?;
    let folder = state.folder(path)?;
    let version = state.version(params.tag.as_deref(), revision(state, params)?, path)?;
    let numbers = params.selection.numbers.clone().unwrap_or(Numbers::All);
    let mut channels = folder.channels_among(&numbers);
    let first: Vec<_> = channels.by_ref().take(LANES).collect();
    let next = channels.next().map(|(channel, _)| channel);
    let more = next.map(|channel| (channels.count() as u64 + 1, channel));
    let asked_for: Vec<u32> = first.iter().map(|(channel, _)| *channel).collect();
    let mut faults = Vec::new();
    let range = window(folder, &asked_for, version, asked, &mut faults)?;
    let most = bars_of_one(asked_for.len());
    let found = folder.intervals(&asked_for, (range.0, range.1 - 1), most, version);
    let found = found.unwrap_or_else(|refusal| {
        if faults.is_empty() {
            faults.push(refusal.into());
        }
        Vec::new()
    });
    let name = |channel| first.iter().find(|(number, _)| *number == channel)?.1.map(str::to_owned);
    let lane =
        |intervals: crate::model::Intervals| Lane { name: name(intervals.channel), intervals };
    let (objects, records) = folder.size();
    Ok(Shown {
        path: path.to_owned(),
        description: folder.description().to_owned(),
        versioning: folder.versioning(),
        columns: folder.columns_at(version.revision).to_vec(),
        sizes: [folder.channels().len() as u64, objects, records],
        tags: tags::lines(state, |tag| tag.is_of(path), None, TAGS),
        choice: choice(state, path, params.tag.as_deref()),
        lanes: found.into_iter().map(lane).collect(),
        more,
        range,
        faults,
        footer: Footer::of(state),
    })
}

/// The first time that is drawn, and the one before which it ends: those that are asked for, or
/// where the newest intervals are.
fn window(
    folder: &Folder,
    channels: &[u32],
    version: Version,
    asked: &Asked,
    faults: &mut Vec<Fault>,
) -> Result<(u64, u64), Fault> {
    let (since, until) = (asked.params.since, asked.params.until);
    let newest = match (since, until) {
        (Some(_), Some(_)) => Newest::default(),
        _ => match folder.newest(channels, INTERVALS, version) {
            Err(refusal @ Refusal::Damaged(_)) => {
                faults.push(refusal.into());
                Newest::default()
            }
            newest => newest?,
        },
    };
    faults.extend(newest.damage.map(|damage| Refusal::Damaged(damage).into()));
    let (begin, end) = with_margin(newest.range.unwrap_or_default());
    let since = since.unwrap_or(if until.is_some_and(|until| until <= begin) { 0 } else { begin });
    let since = since.min(MAX_TIME - 1);
    let until = until.unwrap_or(if end > since { end } else { MAX_TIME });
    Ok((since, until.max(since + 1)))
}

/// A range with room behind it in which open ends are seen.
fn with_margin((since, last): (u64, u64)) -> (u64, u64) {
    let margin = ((last - since) / 12).max(1);
    let since = since.min(MAX_TIME - 1);
    (since, last.saturating_add(margin).clamp(since + 1, MAX_TIME))
}

fn drawn(shown: &Shown, asked: &Asked) -> Markup {
    let path = &shown.path;
    let [channels, objects, records] = shown.sizes;
    let versions = match shown.versioning {
        Versioning::Single => "one version",
        Versioning::Multi => "several versions",
    };
    let contents = html! {
        (above(path))
        h1 { bdi { (clipped(path, 300)) } }
        @if !shown.description.is_empty() { p.about { (shown.description) } }
        p.dim {
            (many(channels, "channel")) ", " (many(objects, "object")) " of "
            (many(records, "record")) ", " (versions) ". "
            a href=(address("/page/at", &[("under", Some(path))])) { "What it holds at a time" }
        }
        (columns(&shown.columns))
        h2 #times { "Over time" }
        (over_time(shown, asked))
        h2 { "Tags" }
        (tags::table(&shown.tags.0))
        @if shown.tags.1 > 0 {
            p { a href=(address("/page/tags", &[("under", Some(path))])) {
                (grouped(shown.tags.1)) " more"
            } }
        }
    };
    framed(path, Some(&shown.footer), &contents)
}

fn columns(columns: &[ColumnSpec]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Columns" { table {
            thead { tr { th scope="col" { "column" } th scope="col" { "kind" } } }
            tbody { @for column in columns.iter().take(COLUMNS) {
                tr {
                    th scope="row" { bdi { (clipped(&column.name, 100)) } }
                    td { (column.kind.name()) }
                }
            } }
        } }
        @if columns.len() > COLUMNS {
            p.dim { (grouped((columns.len() - COLUMNS) as u64)) " more columns." }
        }
    }
}

fn over_time(shown: &Shown, asked: &Asked) -> Markup {
    let asking = Asking::of(&asked.params);
    let (since, until) = (shown.range.0.to_string(), shown.range.1.to_string());
    let is_empty = shown.lanes.iter().all(|lane| lane.intervals.shown.is_empty());
    let bounds = [("since", Some(since.as_str())), ("until", Some(until.as_str()))];
    let folder = [("folder", Some(shown.path.as_str()))];
    let browse = asking.address(&format!("{BASE}/browse"), &[&folder[..], &bounds].concat());
    html! {
        p.dim { "As " (asking.words()) " shows it, from " (since) " to " (until) "." }
        (steps(shown, asked, &asking))
        @for fault in &shown.faults { (problem(fault)) }
        @if shown.sizes[0] == 0 {
            div.notice { p { "No channel has an object yet." } }
        } @else if is_empty && shown.faults.is_empty() {
            div.notice { p { "Nothing is shown at these times by these channels." } }
        }
        @if !shown.lanes.is_empty() {
            (picture(shown, &asking))
        }
        @if let Some((more, next)) = shown.more {
            @let channels = format!("{next}-");
            p { a href=(asking.address("/page/folder", &[&folder[..], &bounds,
                &[("channels", Some(channels.as_str()))]].concat())) {
                (many(more, "more channel"))
            } }
        }
        p.dim { a href=(browse) { "These objects with their values, as JSON" } }
        (form(shown, asked, &asking))
    }
}

fn picture(shown: &Shown, asking: &Asking) -> Markup {
    let place = asking.address("/page/at", &[("under", Some(&shown.path))]);
    let lanes = shown
        .lanes
        .iter()
        .map(|lane| Lane { name: lane.name.clone(), intervals: lane.intervals.clone() });
    Picture { range: shown.range, lanes: lanes.collect(), place }.drawn()
}

/// The ways to other times.
fn steps(shown: &Shown, asked: &Asked, asking: &Asking) -> Markup {
    let (since, until) = shown.range;
    let width = until - since;
    let link = |range: Option<(u64, u64)>, words: &str| {
        let numbers = range.map(|(since, until)| (since.to_string(), until.to_string()));
        let (since, until) =
            numbers.as_ref().map(|(since, until)| (&since[..], &until[..])).unzip();
        let channels = asked.params.selection.numbers.as_ref().map(written);
        let pairs = [
            ("folder", Some(shown.path.as_str())),
            ("since", since),
            ("until", until),
            ("channels", channels.as_deref()),
        ];
        html! { a href={ (asking.address("/page/folder", &pairs)) "#times" } { (words) } }
    };
    let later = until.saturating_add(width).min(MAX_TIME);
    html! {
        nav.steps aria-label="Times" {
            @if since > 0 { (link(Some((since.saturating_sub(width), since)), "◀ earlier")) }
            @if later > until { (link(Some((until, later)), "later ▶")) }
            (link(None, "newest"))
            @if width >= 4 { (link(Some((since + width / 4, until - width / 4)), "closer")) }
            @if since > 0 || until < MAX_TIME {
                (link(Some((since.saturating_sub(width), later)), "wider"))
            }
        }
    }
}

/// Channels as a query has them.
fn written(numbers: &Numbers) -> String {
    let range = |(first, last): &(u32, u32)| match (*first, *last) {
        (first, u32::MAX) => format!("{first}-"),
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    numbers.ranges().iter().map(range).collect::<Vec<_>>().join(",")
}

fn form(shown: &Shown, asked: &Asked, asking: &Asking) -> Markup {
    let channels = asked.params.selection.numbers.as_ref().map(written);
    html! {
        form.asked action="/page/folder" {
            input type="hidden" name="folder" value=(shown.path);
            @for (name, value) in asking.hidden() {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            label { "From " input name="since" inputmode="numeric" value=(shown.range.0); }
            label { "Until " input name="until" inputmode="numeric" value=(shown.range.1); }
            label { "Channels "
                input name="channels" placeholder="all, or 1-5,7,100-" value=[channels];
            }
            (tag_field(&shown.choice, asked.params.tag.as_deref()))
            button { "Show" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ends_have_room_and_any_range_has_a_width() {
        assert_eq!(with_margin((0, 120)), (0, 130));
        assert_eq!(with_margin((0, 0)), (0, 1));
        assert_eq!(with_margin((MAX_TIME, MAX_TIME)), (MAX_TIME - 1, MAX_TIME));
    }

    #[test]
    fn channels_are_written_as_they_are_read() {
        for text in ["7", "1-5,7", "3-"] {
            assert_eq!(written(&crate::protocol::numbers(text).expect("ranges")), text);
        }
    }
}
