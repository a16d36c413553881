//! The whole state, and the one function that changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::{Change, ColumnSpec, Entry};
use super::contents::Touch;
use super::error::{FOLDERS, Refusal};
use super::folder::Folder;
use super::piece::Revision;
use super::recent::{Changed, Recent};
use super::segment::{Damage, Segment};
use super::tag::{Shows, Tag, Tags};
use crate::nopayload::model::Nopayload;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A folder, by its place.
    Folder(usize),
    /// A set, with its description.
    Set(String),
}

/// Folders, what they hold, and tags.
#[derive(Debug, Default)]
pub struct State {
    pub(super) folders: Vec<Folder>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) tags: Tags,
    pub(super) nopayload: Nopayload,
    /// When each revision came, the first at place 0.
    pub(super) times_us: Vec<i64>,
    /// The number of the next segment.
    pub(super) next_segment: u64,
    /// The segments that the last snapshot names.
    pub(super) segments: BTreeSet<u64>,
    /// Of all folders together.
    pub(super) unsealed_bytes: u64,
    pub(super) recent: Recent,
}

/// An entry that can't be applied after those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// Its number or time is not the next one.
    #[error("revision {found} at {time_us} us comes after revision {last}")]
    Order {
        /// Its number.
        found: Revision,
        /// Its time.
        time_us: i64,
        /// The last one that was applied.
        last: Revision,
    },
    /// What it changes is refused.
    #[error("revision {0}: {1}")]
    Refused(Revision, Refusal),
}

impl State {
    /// The last revision; 0 of an empty state.
    pub fn revision(&self) -> Revision {
        self.times_us.len() as Revision
    }

    /// What NoPayloadDB's interface shows.
    pub fn nopayload(&self) -> &Nopayload {
        &self.nopayload
    }

    /// When a revision came, in microseconds since 1970.
    pub fn time_us(&self, revision: Revision) -> Option<i64> {
        let place = usize::try_from(revision).ok()?.checked_sub(1)?;
        self.times_us.get(place).copied()
    }

    /// The last revision that had come by a time.
    pub fn revision_at(&self, time_us: i64) -> Revision {
        self.times_us.partition_point(|time| *time <= time_us) as Revision
    }

    /// The folder of this path.
    ///
    /// # Errors
    /// When there is none.
    pub fn folder(&self, path: &str) -> Result<&Folder, Refusal> {
        Ok(&self.folders[self.place(path)?])
    }

    pub(super) fn place(&self, path: &str) -> Result<usize, Refusal> {
        match self.nodes.get(path) {
            Some(Node::Folder(place)) => Ok(*place),
            _ => Err(Refusal::NoFolder(path.to_owned())),
        }
    }

    /// The folders at or below a path, in order of their paths.
    pub fn under(&self, path: &str) -> impl Iterator<Item = &Folder> {
        self.nodes_under(path).filter_map(|(_, node)| match node {
            Node::Folder(place) => Some(&self.folders[*place]),
            Node::Set(_) => None,
        })
    }

    /// The sets with a description at or below a path.
    pub fn sets(&self, path: &str) -> impl Iterator<Item = (&str, &str)> {
        self.nodes_under(path).filter_map(|(path, node)| match node {
            Node::Set(description) => Some((path.as_str(), description.as_str())),
            Node::Folder(_) => None,
        })
    }

    /// Whether at most this many folders and sets are at or below a path.
    pub fn has_few(&self, path: &str, most: usize) -> bool {
        self.nodes_under(path).nth(most).is_none()
    }

    pub(super) fn nodes_under(&self, path: &str) -> impl Iterator<Item = (&String, &Node)> {
        let stem = path.trim_end_matches('/');
        // "0" is what follows "/".
        let below = self.nodes.range(format!("{stem}/")..format!("{stem}0"));
        self.nodes.get_key_value(stem).into_iter().chain(below)
    }

    /// Refuses a path at and below which nothing is.
    ///
    /// # Errors
    /// Then.
    pub fn check_path(&self, path: &str) -> Result<(), Refusal> {
        match path == "/" || self.nodes_under(path).next().is_some() {
            true => Ok(()),
            false => Err(Refusal::NoFolder(path.to_owned())),
        }
    }

    /// The segments of this number that were opened.
    pub fn opened(&self, id: u64) -> Vec<Arc<Segment>> {
        self.folders.iter().flat_map(|folder| folder.contents.segments(id)).cloned().collect()
    }

    /// Refuses from now on what needs the segment of this number, whose file isn't any more what
    /// was opened.
    pub fn spoil(&self, id: u64, damage: &Damage) {
        self.folders.iter().for_each(|folder| folder.contents.spoil(id, damage));
    }

    /// Applies an entry of a journal. Where it changes a folder of which a segment is damaged, that
    /// folder's data is refused from then on.
    ///
    /// # Errors
    /// When it does not follow what was applied before, or is refused; nothing has changed then.
    pub fn replay(&mut self, entry: Entry) -> Result<(), Misplaced> {
        let (last, Entry { revision, time_us, change }) = (self.revision(), &entry);
        let is_next = *revision == last + 1 && self.times_us.last().is_none_or(|t| t <= time_us);
        if !is_next {
            return Err(Misplaced::Order { found: *revision, time_us: *time_us, last });
        }
        self.check(change).map_err(|refusal| Misplaced::Refused(*revision, refusal))?;
        self.apply(entry);
        Ok(())
    }

    /// Applies an entry that was checked.
    pub(super) fn apply(&mut self, entry: Entry) {
        let Entry { revision, time_us, change } = entry;
        self.times_us.push(time_us);
        match change {
            Change::CreateFolder { path, description, versioning, columns } => {
                let place = self.folders.len();
                self.recent.add(revision, Some(place), Changed::ALL);
                self.nodes.insert(path.clone(), Node::Folder(place));
                let mut folder = Folder::new(&path, &description, versioning);
                folder.set_columns(columns, revision);
                self.folders.push(folder);
            }
            Change::CreateSet { path, description } => {
                let stem = path.trim_end_matches('/').to_owned();
                self.nodes.insert(stem, Node::Set(description));
            }
            Change::AddColumn { folder, column } => {
                self.change_columns(&folder, revision, |columns| columns.push(column));
            }
            Change::RenameColumn { folder, from, to } => {
                self.change_columns(&folder, revision, |columns| {
                    let named = columns.iter_mut().filter(|column| column.name == from);
                    named.for_each(|column| column.name.clone_from(&to));
                });
            }
            Change::NameChannel { folder, channel, name } => {
                let Ok(place) = self.place(&folder) else { return };
                let folder = &mut self.folders[place];
                if let Some(before) =
                    folder.channels.entry(channel).or_default().replace(name.clone())
                {
                    folder.names.remove(&before);
                }
                folder.names.insert(name, channel);
            }
            Change::Insert(batches) => {
                for batch in batches {
                    let tag = batch.tag.as_ref().map(|name| match self.tags.get(name) {
                        Some(tag) => tag.id,
                        None => {
                            let tag = Tag::new(revision, &batch.folder, "", Shows::User);
                            self.tags.insert(name, tag);
                            revision
                        }
                    });
                    let Ok(place) = self.place(&batch.folder) else { continue };
                    self.touch(place, Touch::Insert(batch, tag), revision);
                }
            }
            Change::Truncate { folder, until, channels } => {
                let Ok(place) = self.place(&folder) else { return };
                self.touch(place, Touch::Truncate(until, channels), revision);
            }
            Change::Nopayload(change) => self.nopayload.apply(&change, revision, time_us),
            change @ (Change::Tag { .. }
            | Change::GlobalTag { .. }
            | Change::Pick { .. }
            | Change::Clone { .. }
            | Change::DeleteTag(_)
            | Change::LockTag(..)) => {
                self.apply_to_tags(&change, revision);
                self.recent.add(revision, None, Changed::TAGGED);
            }
        }
    }

    /// Changes the data of a folder, as it was checked.
    pub(super) fn touch(&mut self, place: usize, touch: Touch, revision: Revision) {
        let folder = &mut self.folders[place];
        let before = folder.contents.unsealed_bytes();
        let changed = folder.touch(touch, revision);
        self.unsealed_bytes += folder.contents.unsealed_bytes() - before;
        self.recent.add(revision, Some(place), changed);
    }

    fn change_columns(
        &mut self,
        folder: &str,
        revision: Revision,
        change: impl FnOnce(&mut Vec<ColumnSpec>),
    ) {
        let Ok(place) = self.place(folder) else { return };
        let mut columns = self.folders[place].columns().to_vec();
        change(&mut columns);
        self.folders[place].set_columns(columns, revision);
        self.recent.add(revision, Some(place), Changed::ALL);
    }

    /// Refuses more folders and sets than the limit.
    pub(super) fn check_folders(&self) -> Result<(), Refusal> {
        FOLDERS.check(self.nodes.len() + 1)
    }
}
