//! What the last changes were of: what was known before them is still right elsewhere.

use std::collections::VecDeque;
use std::ops::Range;

use super::piece::Revision;

/// The most changes that are remembered.
const KEPT: usize = 65_536;

/// Times, from the first to the end of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    since: u64,
    until: u64,
}

impl Span {
    /// All times.
    pub(super) const ALL: Self = Self { since: 0, until: u64::MAX };

    /// Covers these, too.
    pub(super) fn add(&mut self, times: Range<u64>) {
        *self = match self.until {
            0 => Self { since: times.start, until: times.end },
            _ => Self { since: self.since.min(times.start), until: self.until.max(times.end) },
        };
    }
}

/// When something else is shown than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// By the head.
    pub(super) head: Span,
    /// By tags, of users or global ones.
    pub(super) tagged: Span,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    revision: Revision,
    /// The folder, by its place; `None` where all may show something else.
    folder: Option<usize>,
    changed: Changed,
}

/// What the last changes were of, in their order.
#[derive(Debug, Default)]
pub(super) struct Recent {
    changes: VecDeque<Change>,
    /// All changes after this revision are remembered.
    after: Revision,
}

impl Recent {
    /// Nothing is remembered of what came up to this revision.
    pub(super) fn after(revision: Revision) -> Self {
        Self { changes: VecDeque::new(), after: revision }
    }

    pub(super) fn add(&mut self, revision: Revision, folder: Option<usize>, changed: Changed) {
        if self.changes.len() == KEPT
            && let Some(oldest) = self.changes.pop_front()
        {
            self.after = oldest.revision;
        }
        self.changes.push_back(Change { revision, folder, changed });
    }

    /// The times around `time`, within `known`, at which the head, or else a tag, of folders shows
    /// at `to` what it showed at `from`; `None` where `time` itself is changed, or may be.
    pub(super) fn unchanged(
        &self,
        (from, to): (Revision, Revision),
        time: u64,
        known: Range<u64>,
        is_head: bool,
        is_asked: impl Fn(usize) -> bool,
    ) -> Option<Range<u64>> {
        if from < self.after {
            return None;
        }
        let first = self.changes.partition_point(|change| change.revision <= from);
        let mut known = known;
        for change in self.changes.range(first..).take_while(|change| change.revision <= to) {
            let Span { since, until } =
                if is_head { change.changed.head } else { change.changed.all() };
            if until <= known.start || since >= known.end || !change.folder.is_none_or(&is_asked) {
                continue;
            }
            match () {
                () if since > time => known.end = since,
                () if until <= time => known.start = until,
                () => return None,
            }
        }
        Some(known)
    }
}

impl Changed {
    /// Everything, of the head and of tags.
    pub(super) const ALL: Self = Self { head: Span::ALL, tagged: Span::ALL };

    /// What tags show, at all times.
    pub(super) const TAGGED: Self = Self { head: Span { since: 0, until: 0 }, tagged: Span::ALL };

    /// Whatever a tag may show: that is what the head shows, too, where it picks none.
    fn all(self) -> Span {
        let mut all = self.tagged;
        if self.head.until > 0 {
            all.add(self.head.since..self.head.until);
        }
        all
    }
}
