//! What changes the state, as values: what a journal holds, and recovery applies again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::piece::Revision;
use super::table::Table;
use super::value::Kind;
use crate::nopayload::model as nopayload;

/// The version of [`Entry`]'s bytes, which are postcard's (its wire format 1.0).
const VERSION: u8 = 1;

/// Whether a time may have several objects of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Versioning {
    /// One at most: what would overlap is refused.
    Single,
    /// Any number, of which the head shows the newest.
    Multi,
}

/// A column: its name and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
}

/// An object: to be inserted, or as an answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its channel.
    pub channel: u32,
    /// Its first time.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// How many payload records it has, one after another in the payload.
    pub records: u32,
}

/// Objects to be inserted into one folder, as if one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The folder.
    pub folder: String,
    /// The tag of users that they are inserted with.
    pub tag: Option<String>,
    /// Whether only that tag shows them, and the head does not.
    pub only_tag: bool,
    /// The objects.
    pub objects: Vec<Object>,
    /// The records of all of them, in the folder's columns.
    pub payload: Table,
}

/// Channels by number: all of them, or those in inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Numbers {
    /// All channels.
    #[default]
    All,
    /// Those in these ranges: sorted, and apart from each other.
    In(Vec<(u32, u32)>),
}

impl Numbers {
    /// The channels of inclusive ranges, which may overlap and be in any order.
    pub fn of_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let meets = next.0 <= before.1.saturating_add(1);
            if meets {
                before.1 = before.1.max(next.1);
            }
            meets
        });
        // They may be kept for as long as a client reads.
        ranges.shrink_to_fit();
        Self::In(ranges)
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(u32, u32)] {
        match self {
            Self::All => &[(0, u32::MAX)],
            Self::In(ranges) => ranges,
        }
    }

    /// Those of a folder's channels from one on that are among these, in order. A question may have
    /// half a million ranges, of each of many folders: it takes a step for each range or channel,
    /// whichever are fewer.
    pub(super) fn among<'a, T>(
        &'a self,
        channels: &'a BTreeMap<u32, T>,
        from: u32,
    ) -> impl Iterator<Item = (u32, &'a T)> {
        let (mut ranges, mut from) = (self.ranges(), Some(from));
        let range = move || {
            let (next, _) = channels.range(from?..).next()?;
            ranges = &ranges[ranges.partition_point(|(_, last)| last < next)..];
            let (first, last) = *ranges.first()?;
            from = last.checked_add(1);
            Some(channels.range(first.max(*next)..=last))
        };
        std::iter::from_fn(range).flatten().map(|(channel, of)| (*channel, of))
    }
}

/// A change of the state. Journals hold a change's place in this list: new ones come last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Makes a folder.
    CreateFolder {
        /// Its path, such as `/detector/temperature`.
        path: String,
        /// What it is for.
        description: String,
        /// Whether a time may have several objects.
        versioning: Versioning,
        /// Its columns.
        columns: Vec<ColumnSpec>,
    },
    /// Makes a folder set, with a description. Those that a folder's path names need none.
    CreateSet {
        /// Its path.
        path: String,
        /// What it is for.
        description: String,
    },
    /// Adds a column; what is there already has no value in it.
    AddColumn {
        /// The folder.
        folder: String,
        /// The column.
        column: ColumnSpec,
    },
    /// Renames a column.
    RenameColumn {
        /// The folder.
        folder: String,
        /// The column.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Names a channel, which need not have objects.
    NameChannel {
        /// The folder.
        folder: String,
        /// The channel.
        channel: u32,
        /// Its name.
        name: String,
    },
    /// Inserts objects into one or several folders.
    Insert(Vec<Batch>),
    /// Ends what the head shows, in a folder of one version.
    Truncate {
        /// The folder.
        folder: String,
        /// The first time at which nothing is shown any more.
        until: u64,
        /// The channels.
        channels: Numbers,
    },
    /// Tags what the head shows, or showed at a revision, in a folder or in all below a set.
    Tag {
        /// The tag's name.
        name: String,
        /// The folder or set.
        path: String,
        /// What it is for.
        description: String,
        /// The revision; the one before this change without it.
        revision: Option<Revision>,
    },
    /// Copies what a tag shows in a folder into a new tag of users.
    Clone {
        /// The tag that is copied.
        from: String,
        /// The new one.
        to: String,
        /// What it is for.
        description: String,
    },
    /// Deletes a tag.
    DeleteTag(String),
    /// Locks a tag, or unlocks it.
    LockTag(String, bool),
    /// Changes what NoPayloadDB's interface shows.
    Nopayload(nopayload::Change),
    /// Makes a global tag, which picks tags of folders and sets below its own.
    GlobalTag {
        /// The tag's name.
        name: String,
        /// The folder set.
        path: String,
        /// What it is for.
        description: String,
        /// The tags that it picks, each of another path.
        tags: Vec<String>,
    },
    /// Changes what a global tag picks.
    Pick {
        /// The global tag.
        name: String,
        /// The tags that it picks from then on, in place of those of their paths.
        tags: Vec<String>,
        /// Paths for which it picks none any more.
        unpick: Vec<String>,
    },
}

/// A change with its place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub revision: Revision,
    /// When it came, in microseconds since 1970; never before the one before.
    pub time_us: i64,
    /// What it changes.
    pub change: Change,
}

/// Bytes that are no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// They are of another version.
    #[error("an entry of version {0}, and this program knows version {VERSION}")]
    Version(u8),
    /// They can't be read.
    #[error("no entry: {0}")]
    Bytes(String),
}

impl Change {
    /// Its bytes, as an entry ends with them.
    pub fn encode(&self) -> Vec<u8> {
        // Nothing of a change is refused by postcard, and a vector takes all that comes.
        postcard::to_extend(self, Vec::new()).unwrap_or_default()
    }
}

impl Entry {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_around(&self.change.encode())
    }

    /// Its bytes, where those of its change are known.
    pub fn encode_around(&self, change: &[u8]) -> Vec<u8> {
        let head = postcard::to_extend(&(self.revision, self.time_us), vec![VERSION]);
        let mut bytes = head.unwrap_or_default();
        bytes.extend_from_slice(change);
        bytes
    }

    /// The entry of these bytes, all of them.
    ///
    /// # Errors
    /// When they are no entry. Whether it can be applied is another question.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadEntry> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
                Ok((entry, [])) => Ok(entry),
                Ok((_, more)) => Err(BadEntry::Bytes(format!("{} bytes too many", more.len()))),
                Err(error) => Err(BadEntry::Bytes(error.to_string())),
            },
            Some((version, _)) => Err(BadEntry::Version(*version)),
            None => Err(BadEntry::Bytes("it is empty".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::Value;
    use proptest::prelude::*;

    fn entry() -> Entry {
        let mut payload = Table::new([Kind::Float, Kind::String]);
        for (row, text) in ["a", "é"].into_iter().enumerate() {
            payload.columns[0].push(&Value::Float(row as f32)).expect("a float");
            payload.columns[1].push(&Value::Text(text.to_owned())).expect("text");
            payload.rows += 1;
        }
        let object = Object { channel: 7, since: 1, until: u64::MAX >> 1, records: 2 };
        let batch = Batch {
            folder: "/a/b".to_owned(),
            tag: Some("t".to_owned()),
            only_tag: false,
            objects: vec![object],
            payload,
        };
        Entry { revision: 3, time_us: -4, change: Change::Insert(vec![batch]) }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written_and_not_with_bytes_too_many() {
        let bytes = entry().encode();
        assert_eq!(Entry::decode(&bytes), Ok(entry()));
        let more = [&bytes[..], &[0]].concat();
        assert_eq!(Entry::decode(&more), Err(BadEntry::Bytes("1 bytes too many".to_owned())));
        assert_eq!(Entry::decode(&[2, 0]), Err(BadEntry::Version(2)));
        assert!((0..bytes.len()).all(|end| Entry::decode(&bytes[..end]).is_err()));
    }

    #[test]
    fn ranges_of_channels_are_put_in_order_and_together() {
        let ranges = vec![(5, 4), (8, 9), (1, 3), (4, 4), (2, 2), (u32::MAX, u32::MAX)];
        let apart = Numbers::In(vec![(1, 4), (8, 9), (u32::MAX, u32::MAX)]);
        assert_eq!(Numbers::of_ranges(ranges), apart);
    }

    proptest! {
        #[test]
        fn channels_among_ranges_are_those_that_one_holds(
            ranges in prop::collection::vec((0..40_u32, 0..4_u32), 0..12),
            channels in prop::collection::btree_set(0..44_u32, 0..30),
            from in 0..44_u32,
            shift in prop::sample::select(vec![0, u32::MAX - 43]),
        ) {
            let moved = |(first, more): &(u32, u32)| (first + shift, first + more + shift);
            let numbers = Numbers::of_ranges(ranges.iter().map(moved).collect());
            let channels: BTreeMap<_, _> =
                channels.iter().map(|one| (one + shift, ())).collect();
            let found = numbers.among(&channels, from + shift);
            let found: Vec<_> = found.map(|(one, ())| one).collect();
            let holds = |one: &u32| {
                let within = |(first, last): &(u32, u32)| (*first..=*last).contains(one);
                *one >= from + shift && ranges.iter().map(moved).any(|range| within(&range))
            };
            let expected: Vec<_> = channels.keys().copied().filter(holds).collect();
            prop_assert_eq!(found, expected);
            let all = Numbers::All.among(&channels, from + shift).count();
            prop_assert_eq!(all, channels.range(from + shift..).count());
        }

        #[test]
        fn no_bytes_are_more_than_refused(bytes in prop::collection::vec(any::<u8>(), 0..200),
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let _ = Entry::decode(&bytes);
            let mut near = entry().encode();
            for (place, byte) in places {
                let place = place.index(near.len());
                near[place] = byte;
            }
            if let Ok(read) = Entry::decode(&near) {
                prop_assert_eq!(Entry::decode(&read.encode()), Ok(read));
            }
        }
    }
}
