//! Questions: at a time, over a range, of a whole tree of folders, and why.

use serde::{Deserialize, Serialize};

use super::error::{ANSWER, Refusal};
use super::folder::{Answer, Folder, Selection, Version};
use super::piece::{Piece, Revision};
use super::state::State;

/// The order of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By channel, then by time.
    #[default]
    Channel,
    /// By time, then by channel.
    Time,
}

/// Where the answer at a time begins to be as it is: every time and revision that has the same
/// answer has the same place, but for gaps that were filled or made since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// The revision.
    pub revision: Revision,
    /// The time.
    pub since: u64,
}

/// Why something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The first time at which it is shown without a break.
    pub shown_since: u64,
    /// The first time after that.
    pub shown_until: u64,
    /// The revision from which on it is shown there.
    pub shown_from_revision: Revision,
    /// The object's first time, as it was inserted.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// The revision that inserted it.
    pub revision: Revision,
    /// When it was inserted, in microseconds since 1970.
    pub time_us: i64,
}

impl Folder {
    /// What is shown at a time: one object at most of each channel, in order of channels.
    ///
    /// # Errors
    /// When a channel isn't there, or there are too many rows.
    pub fn find(&self, time: u64, of: &Selection, version: Version) -> Result<Answer, Refusal> {
        let mut found = Vec::new();
        for (number, channel) in self.selected(of)? {
            let shown = channel.shown(version).and_then(|t| t.at(time, version.revision));
            found.extend(shown.map(|piece| (number, piece)));
        }
        self.gather(&found, version.revision)
    }

    /// What is shown at some time of `since..=until`.
    ///
    /// # Errors
    /// As [`Folder::find`].
    pub fn browse(
        &self,
        (since, until): (u64, u64),
        of: &Selection,
        order: Order,
        version: Version,
    ) -> Result<Answer, Refusal> {
        let mut found: Vec<(u32, Piece)> = Vec::new();
        for (number, channel) in self.selected(of)? {
            let Some(timeline) = channel.shown(version) else { continue };
            let pieces = timeline.range(since, until, version.revision);
            ANSWER.check(found.len() + pieces.len())?;
            found.extend(pieces.into_iter().map(|piece| (number, piece)));
        }
        if order == Order::Time {
            found.sort_by_key(|(channel, piece)| (piece.since, *channel));
        }
        self.gather(&found, version.revision)
    }

    /// How many objects are shown at some time of `since..=until`.
    ///
    /// # Errors
    /// When a channel isn't there.
    pub fn count(
        &self,
        (since, until): (u64, u64),
        of: &Selection,
        version: Version,
    ) -> Result<u64, Refusal> {
        let mut count = 0;
        for (_, channel) in self.selected(of)? {
            let Some(timeline) = channel.shown(version) else { continue };
            count += timeline.range(since, until, version.revision).len() as u64;
        }
        Ok(count)
    }
}

impl State {
    /// Which object is shown at a time, and since which change.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn explain(
        &self,
        folder: &str,
        channel: u32,
        time: u64,
        version: Version,
    ) -> Result<Option<Explained>, Refusal> {
        let folder = self.folder(folder)?;
        let timeline = folder.channels.get(&channel).and_then(|channel| channel.shown(version));
        let piece = timeline.and_then(|timeline| timeline.at(time, version.revision));
        Ok(piece.map(|piece| {
            let stored = &folder.objects[piece.object as usize];
            Explained {
                shown_since: piece.since,
                shown_until: piece.until,
                shown_from_revision: piece.from,
                since: stored.since,
                until: stored.until,
                revision: stored.revision,
                time_us: self.time_us(stored.revision).unwrap_or_default(),
            }
        }))
    }

    /// Where the answer for all folders at or below a path begins to be what it is at a time.
    pub fn canonical(&self, path: &str, time: u64, version: Version) -> Canonical {
        // A tag of users that is made later shows nothing, so it is not part of an answer before.
        let mut found = Canonical { revision: version.user_tag.unwrap_or(0), since: 0 };
        for folder in self.under(path) {
            let Some((from, _)) = folder.schema(version.revision) else { continue };
            found.revision = found.revision.max(*from);
            for channel in folder.channels.values() {
                let Some(timeline) = channel.shown(version) else { continue };
                let around = timeline.around(time, version.revision);
                found.revision = found.revision.max(around.from);
                found.since = found.since.max(around.since);
            }
        }
        found.revision = found.revision.min(version.revision);
        found
    }

    /// What is shown at a time in all folders at or below a path, in order of their paths.
    ///
    /// # Errors
    /// When there are too many rows.
    pub fn slice(&self, path: &str, time: u64, version: Version) -> Result<Vec<Answer>, Refusal> {
        let (mut slice, mut rows) = (Vec::new(), 0);
        for folder in self.under(path) {
            if folder.schema(version.revision).is_none() {
                continue;
            }
            let answer = folder.find(time, &Selection::default(), version)?;
            rows += answer.objects.len().max(answer.payload.rows as usize);
            ANSWER.check(rows)?;
            slice.push(answer);
        }
        Ok(slice)
    }
}
