//! Places of answers that were looked up before: a place is the same for all times of an interval,
//! and after every change that is of other times or folders.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::error::Refusal;
use super::piece::Revision;
use super::query::Canonical;
use super::shown::Shown;
use super::state::State;
use super::tag::{Of, View, is_under};

/// The most places that are remembered; with one more all are forgotten.
const KEPT: usize = 16_384;

/// How many places that begin before a time are looked at: those of other revisions lie between.
const LOOKED_AT: usize = 8;

/// Places of answers, by what was asked.
#[derive(Debug, Default)]
pub struct Leads {
    by_question: HashMap<(String, Of), BTreeMap<(u64, Revision), Lead>>,
    count: usize,
}

/// The times and revisions that lead to a place.
#[derive(Clone, Debug)]
pub struct Lead {
    place: Canonical,
    times: Range<u64>,
    from: Revision,
    to: Revision,
}

impl Leads {
    /// The place to which a time leads, where it is remembered, that of [`State::canonical`] or
    /// another with the same answer; and a time up to which all times lead there.
    pub fn known(
        &mut self,
        state: &State,
        path: &str,
        time: u64,
        view: View,
    ) -> Option<(Canonical, u64)> {
        let known = self.by_question.get_mut(&(path.to_owned(), view.of))?;
        let mut before = known.range_mut(..=(time, Revision::MAX)).rev().take(LOOKED_AT);
        let found =
            before.find_map(|(_, lead)| lead.leads(state, path, time, view).then_some(lead));
        found.map(|lead| (lead.place, lead.times.end))
    }

    /// Remembers what was looked up of a path.
    pub fn keep(&mut self, path: &str, of: Of, lead: Lead) {
        if self.count >= KEPT {
            (self.count, self.by_question) = (0, HashMap::new());
        }
        let known = self.by_question.entry((path.to_owned(), of)).or_default();
        if known.insert((lead.place.since, lead.place.revision), lead).is_none() {
            self.count += 1;
        }
    }
}

impl Lead {
    /// Looks up where a time leads.
    ///
    /// # Errors
    /// As [`State::canonical`].
    pub fn look_up(state: &State, path: &str, time: u64, view: View) -> Result<Self, Refusal> {
        let (place, until) = state.canonical_until(path, time, view)?;
        Ok(Self::of(place, until, view))
    }

    /// What a time shows, and where it leads: both are found in one pass.
    ///
    /// # Errors
    /// As [`State::shown`].
    pub fn show<'a>(
        state: &'a State,
        path: &str,
        time: u64,
        view: View,
    ) -> Result<(Self, Vec<Shown<'a>>), Refusal> {
        let (shown, place, until) = state.shown_until(path, time, view)?;
        Ok((Self::of(place, until, view), shown))
    }

    fn of(place: Canonical, until: u64, View { revision, .. }: View) -> Self {
        Self { place, times: place.since..until, from: revision, to: revision }
    }

    /// The place, and a time up to which all times lead there.
    pub fn place(&self) -> (Canonical, u64) {
        (self.place, self.times.end)
    }

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
