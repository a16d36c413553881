//! The frame of every page: its head, its length, and the phrases that several pages share.

use findings::Summary;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::budget::{self, Budget, clipped};

/// The longest a page may be.
pub const LIMIT_BYTES: usize = 500_000;

/// The most points that a page shows in full, and of which it needs more than trials.
pub const MAX_POINTS_IN_FULL: usize = 60;

/// The bytes around the parts: the links between them, and those of a served page.
const AROUND_BYTES: usize = 8_000;

const STYLE: &str = include_str!("style.css");

/// Where a run is shown, which is where its links lead.
pub(super) enum Place {
    /// In a file of its own.
    Alone,
    /// Among the other runs of a ledger.
    Served,
}

/// A page with this title and contents, which reloads itself after `reload_s`.
pub(super) fn page(title: &str, reload_s: Option<u32>, contents: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(seconds) = reload_s { meta http-equiv="refresh" content=(seconds); }
                // Without an icon of its own, a browser asks the server for one.
                link rel="icon" href="data:,";
                title { (clipped(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body { (contents) }
        }
    }
}

/// The budget of a page's body.
pub(super) fn page_budget() -> Budget {
    let longest_title = "x".repeat(budget::CLIPPED_BYTES + 10);
    let frame = page(&longest_title, Some(9_999), &Markup::default()).into_string().len();
    Budget::of(LIMIT_BYTES - frame - AROUND_BYTES)
}

/// A note that more parts don't fit, and the command that shows them; empty when none are missing.
pub(super) fn rest(summary: &Summary, more: usize, what: &str) -> Markup {
    rest_in(more, what, &format!("loadline report {}", summary.id))
}

/// The same with another command.
pub(super) fn rest_in(more: usize, what: &str, command: &str) -> Markup {
    html! {
        @if more > 0 {
            p.note {
                (more) " more " (what) " have no room here: " code { (command) } " has all of it."
            }
        }
    }
}
