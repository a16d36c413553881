//! The tree of folders and sets, with their descriptions.

use std::collections::BTreeMap;

use base::grouped;
use maud::{Markup, html};

use super::frame::{Asked, Footer, framed, problem};
use super::words::{address, clipped, many, set};

use crate::model::{Damage, Folder, State};
use crate::server::app::App;
use crate::server::fault::Fault;

/// The most rows of a tree. Where there are more, only what is right below is listed.
const ROWS: usize = 200;

/// The most damages that are named.
const DAMAGES: usize = 5;

/// How far a row is indented at most.
const DEEPEST: usize = 12;

/// The most sets above that a page leads to.
const ABOVE: usize = 6;

/// A row: a set or a folder.
#[derive(Default)]
struct Row {
    path: String,
    description: String,
    folder: Option<Leaf>,
    /// How many folders are below.
    folders: u64,
}

struct Leaf {
    columns: u64,
    channels: u64,
    objects: u64,
}

/// The rows by their paths, with a character for each slash that comes before all others: names
/// have none of them, so that what is below a set follows it.
type Rows = BTreeMap<String, Row>;

/// What a page of the tree shows.
struct Tree {
    under: String,
    description: String,
    rows: Rows,
    is_whole: bool,
    /// How many folders there are.
    folders: u64,
    damages: Vec<Damage>,
    iovs: u64,
    footer: Footer,
}

pub(super) fn tree(app: &App, asked: &Asked) -> Result<Markup, Fault> {
    let under = match asked.params.under.as_deref().unwrap_or("/").trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    let tree = read(&app.state.read(), under)?;
    Ok(drawn(&tree, asked.after.as_deref()))
}

fn read(state: &State, under: &str) -> Result<Tree, Fault> {
    state.check_path(under)?;
    let whole = rows(state, under, usize::MAX);
    let (rows, is_whole) = match whole {
        Some(rows) => (rows, true),
        None => (rows(state, under, 1).unwrap_or_default(), false),
    };
    let own = state.sets(under).find(|(path, _)| *path == under.trim_end_matches('/'));
    let is_root = under == "/";
    Ok(Tree {
        under: under.to_owned(),
        description: own.map_or(String::new(), |(_, description)| description.to_owned()),
        rows,
        is_whole,
        folders: state.under(under).count() as u64,
        damages: if is_root { state.damages(false) } else { Vec::new() },
        iovs: if is_root { state.nopayload().iov_count() as u64 } else { 0 },
        footer: Footer::of(state),
    })
}

/// What is below a path, to this depth; `None` where the whole of it has too many rows.
fn rows(state: &State, under: &str, depth: usize) -> Option<Rows> {
    let stem = under.trim_end_matches('/');
    let mut rows = Rows::new();
    let mut add = |path: &str, description: &str, folder: Option<&Folder>| {
        let below = path.get(stem.len()..).unwrap_or_default();
        let ends = below.match_indices('/').map(|(at, _)| at).skip(1).chain([below.len()]);
        for end in ends.take(depth) {
            let row = rows.entry(below[..end].replace('/', "\0")).or_default();
            row.path = format!("{stem}{}", &below[..end]);
            row.folders += u64::from(folder.is_some());
            if end == below.len() {
                row.description = clipped(description, 200);
                row.folder = folder.map(|folder| Leaf {
                    columns: folder.columns().len() as u64,
                    channels: folder.channels().len() as u64,
                    objects: folder.size().0,
                });
            }
            if depth == usize::MAX && rows.len() > ROWS {
                return false;
            }
        }
        true
    };
    let folders = state.under(under).all(|one| add(one.path(), one.description(), Some(one)));
    let mut sets = state.sets(under).filter(|(path, _)| *path != stem);
    (folders && sets.all(|(path, description)| add(path, description, None))).then_some(rows)
}

fn drawn(tree: &Tree, after: Option<&str>) -> Markup {
    let is_root = tree.under == "/";
    let title = if is_root { "Folders" } else { &tree.under };
    let contents = html! {
        @if !is_root { (above(&tree.under)) }
        h1 { (clipped(title, 300)) }
        @if !tree.description.is_empty() { p.about { (tree.description) } }
        (damaged(&tree.damages))
        @if tree.rows.is_empty() {
            (nothing())
        } @else {
            p.dim {
                (many(tree.folders, "folder"))
                @if !tree.is_whole { ", too many for one page: this is what is right below" }
                ". "
                a href=(address("/page/at", &[("under", Some(&tree.under))])) {
                    "What they hold at a time"
                }
            }
            (listed(tree, after))
        }
        @if tree.iovs > 0 {
            p.dim {
                "Beside them " (many(tree.iovs, "payload IOV"))
                " of NoPayloadDB's interface, below " code { "/api/cdb_rest/" } "."
            }
        }
    };
    framed(title, Some(&tree.footer), &contents)
}

/// The sets above a path.
pub(super) fn above(path: &str) -> Markup {
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).skip(1).collect();
    let left_out = ends.len().saturating_sub(ABOVE);
    html! {
        nav.above aria-label="Above" {
            a href="/" { "Folders" }
            @if left_out > 0 { span { "…" } }
            @for end in &ends[left_out..] {
                @let name = path[..*end].rsplit('/').next().unwrap_or_default();
                a href=(set(&path[..*end])) { bdi { (clipped(name, 60)) } }
            }
        }
    }
}

fn damaged(damages: &[Damage]) -> Markup {
    let fault = |damage: &Damage| Fault::from(crate::model::Refusal::Damaged(damage.clone()));
    html! {
        @for damage in damages.iter().take(DAMAGES) { (problem(&fault(damage))) }
        @if damages.len() > DAMAGES {
            p.dim { (many((damages.len() - DAMAGES) as u64, "more damaged segment")) "." }
        }
    }
}

fn nothing() -> Markup {
    html! {
        div.notice {
            p {
                strong { "There is no folder here yet." }
                " This makes one, and puts a value into it:"
            }
            pre { code {
                "loadline conditions create /det/temperature --column value=float\n"
                "loadline conditions insert /det/temperature --channel 3 --since 100 value=20.5"
            } }
        }
    }
}

fn listed(tree: &Tree, after: Option<&str>) -> Markup {
    let behind = |row: &&Row| after.is_none_or(|after| row.path.as_str() > after);
    let all: Vec<&Row> = match tree.is_whole {
        true => tree.rows.values().collect(),
        false => tree.rows.values().filter(behind).collect(),
    };
    let shown = &all[..all.len().min(ROWS)];
    let depth = |row: &Row| {
        let above = tree.under.trim_end_matches('/').matches('/').count() + 1;
        // A folder that is asked for as a set is a row of its own.
        row.path.matches('/').count().saturating_sub(above).min(DEEPEST)
    };
    html! {
        ul.tree {
            @for row in shown {
                li style={ "--d:" (depth(row)) } { (one(row)) }
            }
        }
        @if all.len() > shown.len() {
            @let last = shown.last().map(|row| row.path.as_str());
            p { a href=(address("/page/set", &[("under", Some(&tree.under)), ("after", last)])) {
                (grouped((all.len() - shown.len()) as u64)) " more"
            } }
        }
    }
}

fn one(row: &Row) -> Markup {
    let name = row.path.rsplit('/').next().unwrap_or_default();
    let name = html! { bdi { (clipped(name, 100)) } };
    html! {
        @match &row.folder {
            Some(leaf) => {
                a.folder href=(address("/page/folder", &[("folder", Some(&row.path))])) { (name) }
                " " span.dim {
                    (many(leaf.columns, "column")) ", " (many(leaf.channels, "channel")) ", "
                    (many(leaf.objects, "object"))
                }
            }
            None => {
                a.set href=(set(&row.path)) { (name) "/" }
                " " span.dim { (many(row.folders, "folder")) }
            }
        }
        @if !row.description.is_empty() { span.about { (row.description) } }
    }
}
