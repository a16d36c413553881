//! Places of answers that were looked up before: a place is the same for all times of an interval,
//! and after every change that is of other times or folders.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::error::Refusal;
use super::piece::Revision;
use super::query::Canonical;
use super::state::State;
use super::tag::{Of, View, is_under};

/// The most places that are remembered; with one more all are forgotten.
const KEPT: usize = 16_384;

/// How many places that begin before a time are looked at: those of other revisions lie between.
const LOOKED_AT: usize = 8;

/// Places of answers, by what was asked.
#[derive(Debug, Default)]
pub struct Leads {
    by_question: HashMap<(String, Of), BTreeMap<(u64, Revision), Known>>,
    count: usize,
    /// How many questions were answered of what was remembered.
    pub hits: u64,
}

/// The times and revisions that lead to a place.
#[derive(Clone, Debug)]
struct Known {
    place: Canonical,
    times: Range<u64>,
    from: Revision,
    to: Revision,
}

impl Leads {
    /// The place to which a time leads: as [`State::canonical`], or another with the same answer.
    ///
    /// # Errors
    /// As that.
    pub fn lead(
        &mut self,
        state: &State,
        path: &str,
        time: u64,
        view: View,
    ) -> Result<Canonical, Refusal> {
        let question = (path.to_owned(), view.of);
        let known = self.by_question.entry(question.clone()).or_default();
        let before = known.range_mut(..=(time, Revision::MAX)).rev().take(LOOKED_AT);
        for (_, known) in before {
            if known.leads(state, path, time, view) {
                self.hits += 1;
                return Ok(known.place);
            }
        }
        let (place, until) = state.canonical_until(path, time, view)?;
        let times = place.since..until;
        let new = Known { place, times, from: view.revision, to: view.revision };
        if self.count >= KEPT {
            (self.count, self.by_question) = (0, HashMap::new());
        }
        let known = self.by_question.entry(question).or_default();
        if known.insert((place.since, place.revision), new).is_none() {
            self.count += 1;
        }
        Ok(place)
    }
}

impl Known {
    /// Whether a time leads there at the revision of a view, which is learned from then on.
    fn leads(&mut self, state: &State, path: &str, time: u64, view: View) -> bool {
        if view.revision < self.from || !self.times.contains(&time) {
            return false;
        }
        if view.revision > self.to {
            let is_asked = |place: usize| is_under(state.folders[place].path(), path);
            let (revisions, is_head) = ((self.to, view.revision), view.of == Of::Head);
            let times = self.times.clone();
            let left = state.recent.unchanged(revisions, time, times, is_head, is_asked);
            let Some(left) = left else { return false };
            (self.times, self.to) = (left, view.revision);
        }
        true
    }
}
