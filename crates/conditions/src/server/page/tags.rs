//! Tags: of which folders and sets they are, and what they show.

use base::grouped;
use maud::{Markup, html};

use super::frame::{Asked, Footer, TAGS, framed};
use super::words::{address, clipped};

use crate::model::{Shows, State, Tag};
use crate::server::app::App;
use crate::server::fault::Fault;

/// A tag in a list.
pub(super) struct Line {
    name: String,
    path: String,
    description: String,
    shows: String,
    is_locked: bool,
}

/// The tags that are wanted behind one of this name, `most` of them, and how many more there are.
pub(super) fn lines(
    state: &State,
    wants: impl Fn(&Tag) -> bool,
    after: Option<&str>,
    most: usize,
) -> (Vec<Line>, u64) {
    let behind = state.tags().filter(|(name, _)| after.is_none_or(|after| *name > after));
    let mut tags = behind.filter(|(_, tag)| wants(tag));
    let line = |(name, tag): (&str, &Tag)| Line {
        name: name.to_owned(),
        path: tag.path.clone(),
        description: clipped(&tag.description, 200),
        shows: match &tag.shows {
            Shows::Head(revision) => format!("the head at revision {revision}"),
            Shows::User => "objects of its own".to_owned(),
            Shows::Picks(picks) => match picks.now().count() {
                1 => "1 tag that it picks".to_owned(),
                count => format!("{} tags that it picks", grouped(count as u64)),
            },
        },
        is_locked: tag.is_locked,
    };
    let lines = tags.by_ref().take(most).map(line).collect();
    (lines, tags.count() as u64)
}

pub(super) fn tags(app: &App, asked: &Asked) -> Result<Markup, Fault> {
    let under = asked.params.under.as_deref().unwrap_or("/");
    let after = asked.after.as_deref();
    let state = app.state.read();
    state.check_path(under)?;
    let ((lines, more), footer) = (
        lines(&state, |tag| tag.is_of(under) || tag.is_below(under), after, TAGS),
        Footer::of(&state),
    );
    drop(state);
    let last = lines.last().map(|line| line.name.clone());
    let title = if under == "/" { "Tags".to_owned() } else { format!("Tags of {under}") };
    let contents = html! {
        h1 { (clipped(&title, 300)) }
        (table(&lines))
        @if more > 0 {
            @let pairs = [("under", Some(under)), ("after", last.as_deref())];
            p { a href=(address("/page/tags", &pairs)) { (grouped(more)) " more" } }
        }
    };
    Ok(framed(&title, Some(&footer), &contents))
}

pub(super) fn table(lines: &[Line]) -> Markup {
    let place = |line: &Line| {
        address("/page/at", &[("under", Some(&line.path)), ("tag", Some(&line.name))])
    };
    html! {
        @if lines.is_empty() {
            p.dim { "There is none." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Tags" { table {
                thead { tr {
                    th scope="col" { "tag" } th scope="col" { "of" } th scope="col" { "shows" }
                    th scope="col" { "description" }
                } }
                tbody { @for line in lines { tr {
                    th scope="row" {
                        a href=(place(line)) { bdi { (clipped(&line.name, 80)) } }
                        @if line.is_locked { " " span.dim { "locked" } }
                    }
                    td { bdi { (clipped(&line.path, 80)) } }
                    td { (line.shows) }
                    td.wrap { (line.description) }
                } } }
            } }
        }
    }
}
