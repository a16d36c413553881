//! The whole state, and the one function that changes it.

use std::collections::BTreeMap;

use super::change::{Change, ColumnSpec, Entry, Versioning};
use super::error::{FOLDERS, Refusal};
use super::folder::{Folder, Version};
use super::piece::Revision;

/// What a tag shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// What the head showed at a revision.
    Head(Revision),
    /// What was inserted with it, or copied into it.
    User,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The revision that made it: of one folder, a revision makes one tag at most.
    pub id: Revision,
    /// The folder or set.
    pub path: String,
    /// What it is for.
    pub description: String,
    /// What it shows.
    pub shows: Shows,
    /// Whether it may be deleted, or inserted into.
    pub is_locked: bool,
}

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
    pub(super) tags: BTreeMap<String, Tag>,
    /// When each revision came, the first at place 0.
    times_us: Vec<i64>,
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

    pub(super) fn nodes_under(&self, path: &str) -> impl Iterator<Item = (&String, &Node)> {
        let stem = path.trim_end_matches('/');
        // "0" is what follows "/".
        let below = self.nodes.range(format!("{stem}/")..format!("{stem}0"));
        self.nodes.get_key_value(stem).into_iter().chain(below)
    }

    /// The tags by name.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &Tag)> {
        self.tags.iter().map(|(name, tag)| (name.as_str(), tag))
    }

    /// The tag of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn tag(&self, name: &str) -> Result<&Tag, Refusal> {
        self.tags.get(name).ok_or_else(|| Refusal::NoTag(name.to_owned()))
    }

    /// The version that a tag shows of what is at and below `path`, or that the head shows where
    /// there is none; at a revision, or now.
    ///
    /// # Errors
    /// When there is no such tag or revision, or the tag is of another folder.
    pub fn version(
        &self,
        tag: Option<&str>,
        revision: Option<Revision>,
        path: &str,
    ) -> Result<Version, Refusal> {
        let last = self.revision();
        let revision = revision.unwrap_or(last);
        if revision > last {
            return Err(Refusal::NoRevision(revision, last));
        }
        let Some(name) = tag.filter(|name| *name != super::HEAD) else {
            return Ok(Version { revision, user_tag: None });
        };
        let tag = self.tag(name)?;
        let stem = tag.path.trim_end_matches('/');
        let is_below = path.strip_prefix(stem).is_some_and(|r| r.is_empty() || r.starts_with('/'));
        if !is_below {
            let path = tag.path.clone();
            return Err(Refusal::OtherTag(name.to_owned(), path, "which this is not below"));
        }
        Ok(match tag.shows {
            Shows::Head(at) => Version { revision: at.min(revision), user_tag: None },
            Shows::User => Version { revision, user_tag: Some(tag.id) },
        })
    }

    /// The version that a tag of users shows at a revision, where the tag's number is known.
    ///
    /// # Errors
    /// As [`State::version`].
    pub fn user_version(
        &self,
        tag: Option<Revision>,
        revision: Revision,
        path: &str,
    ) -> Result<Version, Refusal> {
        let Some(id) = tag else { return self.version(None, Some(revision), path) };
        let is_it = |tag: &Tag| tag.id == id && tag.shows == Shows::User;
        let name = self.tags.iter().find(|(_, tag)| is_it(tag)).map(|(name, _)| name.as_str());
        let missing = || Refusal::NoTag(format!("number {id}"));
        self.version(Some(name.ok_or_else(missing)?), Some(revision), path)
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

    /// Applies an entry of a journal.
    ///
    /// # Errors
    /// When it does not follow what was applied before, or is refused; nothing has changed then.
    pub fn replay(&mut self, entry: &Entry) -> Result<(), Misplaced> {
        let (last, Entry { revision, time_us, change }) = (self.revision(), entry);
        let is_next = *revision == last + 1 && self.times_us.last().is_none_or(|t| t <= time_us);
        if !is_next {
            return Err(Misplaced::Order { found: *revision, time_us: *time_us, last });
        }
        self.check(change).map_err(|refusal| Misplaced::Refused(*revision, refusal))?;
        self.apply(entry);
        Ok(())
    }

    /// Applies an entry that was checked.
    pub(super) fn apply(&mut self, entry: &Entry) {
        let revision = entry.revision;
        self.times_us.push(entry.time_us);
        match &entry.change {
            Change::CreateFolder { path, description, versioning, columns } => {
                self.nodes.insert(path.clone(), Node::Folder(self.folders.len()));
                let folder = Folder::new(path, description, *versioning, columns, revision);
                self.folders.push(folder);
            }
            Change::CreateSet { path, description } => {
                let stem = path.trim_end_matches('/').to_owned();
                self.nodes.insert(stem, Node::Set(description.clone()));
            }
            Change::AddColumn { folder, column } => {
                self.change_columns(folder, revision, |columns| columns.push(column.clone()));
            }
            Change::RenameColumn { folder, from, to } => {
                self.change_columns(folder, revision, |columns| {
                    let named = columns.iter_mut().filter(|column| column.name == *from);
                    named.for_each(|column| column.name.clone_from(to));
                });
            }
            Change::NameChannel { folder, channel, name } => {
                let Ok(place) = self.place(folder) else { return };
                let folder = &mut self.folders[place];
                let named = folder.channels.entry(*channel).or_default();
                if let Some(before) = named.name.replace(name.clone()) {
                    folder.names.remove(&before);
                }
                folder.names.insert(name.clone(), *channel);
            }
            Change::Insert(batches) => {
                for batch in batches {
                    let tag = batch.tag.as_ref().map(|tag| {
                        self.tags.entry(tag.clone()).or_insert_with(|| Tag {
                            id: revision,
                            path: batch.folder.clone(),
                            description: String::new(),
                            shows: Shows::User,
                            is_locked: false,
                        })
                    });
                    let tag = tag.map(|tag| tag.id);
                    let Ok(place) = self.place(&batch.folder) else { continue };
                    self.folders[place].insert(batch, tag, revision);
                }
            }
            Change::Truncate { folder, until, channels } => {
                let Ok(place) = self.place(folder) else { return };
                self.folders[place].truncate(*until, channels, revision);
            }
            Change::Tag { .. }
            | Change::Clone { .. }
            | Change::DeleteTag(_)
            | Change::LockTag(..) => self.apply_to_tags(&entry.change, revision),
        }
    }

    fn apply_to_tags(&mut self, change: &Change, made: Revision) {
        match change {
            Change::Tag { name, path, description, revision } => {
                let shows = Shows::Head(revision.unwrap_or(made - 1));
                let (path, description) = (path.clone(), description.clone());
                let tag = Tag { id: made, path, description, shows, is_locked: false };
                self.tags.insert(name.clone(), tag);
            }
            Change::Clone { from, to, description } => {
                let Some(source) = self.tags.get(from) else { return };
                let mut tag = Tag { id: made, is_locked: false, ..source.clone() };
                tag.description.clone_from(description);
                if let Some(place) = self.multi(&tag.path) {
                    let version = match source.shows {
                        Shows::Head(revision) => Version { revision, user_tag: None },
                        Shows::User => Version { revision: made - 1, user_tag: Some(source.id) },
                    };
                    self.folders[place].copy_tag(version, made);
                    tag.shows = Shows::User;
                }
                self.tags.insert(to.clone(), tag);
            }
            Change::DeleteTag(name) => {
                let Some(tag) = self.tags.remove(name) else { return };
                if let Some(place) = self.multi(&tag.path) {
                    self.folders[place].delete_tag(tag.id);
                }
            }
            Change::LockTag(name, is_locked) => {
                if let Some(tag) = self.tags.get_mut(name) {
                    tag.is_locked = *is_locked;
                }
            }
            _ => {}
        }
    }

    /// The place of a folder of several versions.
    fn multi(&self, path: &str) -> Option<usize> {
        let place = self.place(path).ok()?;
        (self.folders[place].versioning() == Versioning::Multi).then_some(place)
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
    }

    /// Refuses more folders and sets than the limit.
    pub(super) fn check_room(&self) -> Result<(), Refusal> {
        FOLDERS.check(self.nodes.len() + 1)
    }
}
