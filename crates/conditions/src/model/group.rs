//! Changes that are written together, and that no reader sees before they are.

use std::collections::HashSet;

use super::change::{Change, Entry};
use super::check::Footprint;
use super::error::Refusal;
use super::room::Adding;
use super::state::State;

/// Changes that were checked against one state and don't concern each other, so that each can be
/// applied as it was checked. They are numbered in the order in which they came.
#[derive(Debug, Default)]
pub struct Group {
    entries: Vec<Entry>,
    is_alone: bool,
    channels: HashSet<(usize, u32)>,
    adding: Adding,
    is_full: bool,
}

/// What came of a change that was to be added to a group.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// It has this revision once the group is applied.
    At(u64),
    /// It concerns what another change of the group does, and has to wait for the next group.
    Later(Change),
}

impl Group {
    /// Adds a change that comes at `now_us`. The state has to be the one that the group is applied
    /// to.
    ///
    /// # Errors
    /// When the change is refused.
    pub fn add(&mut self, state: &State, change: Change, now_us: i64) -> Result<Added, Refusal> {
        let revision = state.revision() + 1 + self.entries.len() as u64;
        if self.is_alone || self.is_full {
            return Ok(Added::Later(change));
        }
        match state.check_whole(&change).and_then(|()| state.check(&change)) {
            // It may be allowed by what comes before it.
            Err(_) if !self.entries.is_empty() => return Ok(Added::Later(change)),
            Err(refusal) => return Err(refusal),
            Ok(Footprint::Alone) if !self.entries.is_empty() => return Ok(Added::Later(change)),
            Ok(Footprint::Alone) => self.is_alone = true,
            Ok(Footprint::Channels(channels)) => {
                if channels.iter().any(|channel| self.channels.contains(channel)) {
                    return Ok(Added::Later(change));
                }
                self.channels.extend(channels);
            }
        }
        if let Err(refusal) = state.check_room(&change, &mut self.adding) {
            self.is_full = true;
            // There is room for it if what comes before it is of other channels.
            return if self.entries.is_empty() { Err(refusal) } else { Ok(Added::Later(change)) };
        }
        let before = self.entries.last().map(|entry| entry.time_us);
        let before = before.or_else(|| state.time_us(state.revision()));
        let time_us = now_us.max(before.unwrap_or(now_us));
        self.entries.push(Entry { revision, time_us, change });
        Ok(Added::At(revision))
    }

    /// The changes, as a journal keeps them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The changes, to be checked again.
    pub fn into_changes(self) -> impl Iterator<Item = Change> {
        self.entries.into_iter().map(|entry| entry.change)
    }
}

impl State {
    /// Applies a group that was checked against this state.
    pub fn apply_group(&mut self, group: Group) {
        group.entries.into_iter().for_each(|entry| self.apply(entry));
    }
}
