//! Tags: what each shows, and what a question that names one is asked of, as data.

use std::collections::{BTreeMap, BTreeSet};

use super::piece::{Revision, Version};

/// What a tag shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// What the head showed at a revision.
    Head(Revision),
    /// What was inserted with it, or copied into it.
    User,
    /// What the tags show that it picks for folders and sets below its own: a global tag.
    Picks(Picks),
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The revision that made it: of one folder or set, a revision makes one tag at most.
    pub id: Revision,
    /// The folder or set.
    pub path: String,
    /// What it is for.
    pub description: String,
    /// What it shows.
    pub shows: Shows,
    /// Whether it is locked itself: `State::check_unlocked` knows of those that pick it.
    pub is_locked: bool,
    /// The global tags that pick it now.
    pub picked_by: BTreeSet<String>,
}

/// Which tag a global tag picks for each path, now and at every revision before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picks(pub(super) BTreeMap<String, Vec<Picked>>);

/// From a revision on: the number of the tag, or that there is none.
pub(super) type Picked = (Revision, Option<Revision>);

impl Picks {
    /// The paths and numbers of the tags that are picked now.
    pub fn now(&self) -> impl Iterator<Item = (&str, Revision)> {
        let last = |history: &Vec<Picked>| history.last().and_then(|(_, picked)| *picked);
        self.0.iter().filter_map(move |(path, history)| Some((&path[..], last(history)?)))
    }

    /// Of how many paths it has ever picked a tag.
    pub fn paths(&self) -> usize {
        self.0.len()
    }

    /// How many there were.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub(super) fn of(&self, path: &str) -> Option<Revision> {
        self.0.get(path)?.last()?.1
    }

    /// The last revision at which a tag was picked for its path, if it ever was.
    pub(super) fn until(&self, path: &str, id: Revision) -> Option<Revision> {
        let history = self.0.get(path)?;
        let place = history.iter().rposition(|(_, picked)| *picked == Some(id))?;
        Some(history.get(place + 1).map_or(Revision::MAX, |(from, _)| from - 1))
    }

    pub(super) fn set(&mut self, path: &str, picked: Option<Revision>, revision: Revision) {
        self.0.entry(path.to_owned()).or_default().push((revision, picked));
    }

    /// What is picked for a folder at a revision, the nearest of its sets first, and since when.
    pub(super) fn at(
        &self,
        folder: &str,
        revision: Revision,
    ) -> (Option<(&str, Revision)>, Revision) {
        let mut from = 0;
        let mut path = folder;
        while !path.is_empty() {
            if let Some((own, history)) = self.0.get_key_value(path)
                && let before = history.partition_point(|(from, _)| *from <= revision)
                && let Some((since, picked)) = history[..before].last()
            {
                from = from.max(*since);
                if let Some(id) = picked {
                    return (Some((own, *id)), from);
                }
            }
            path = path.rfind('/').map_or("", |end| &path[..end]);
        }
        (None, from)
    }
}

/// What the folders of a set are asked of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Of {
    /// The head.
    #[default]
    Head,
    /// A tag of users of one folder, by its number.
    User(Revision),
    /// A global tag, by its number.
    Global(Revision),
}

/// What a question of all folders of a set is asked of: each folder's [`Version`] follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The revision.
    pub revision: Revision,
    /// The head, or a tag.
    pub of: Of,
}

/// What a view is of one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// `None` where a global tag picks nothing for it.
    pub(super) version: Option<Version>,
    /// The revision from which on this is so.
    pub(super) from: Revision,
}

/// Tags by name and by number.
#[derive(Debug, Default)]
pub(super) struct Tags {
    pub(super) by_name: BTreeMap<String, Tag>,
    /// Names by number and path.
    pub(super) names: BTreeMap<(Revision, String), String>,
}

impl Tags {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Tag> {
        self.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Tag> {
        self.by_name.get_mut(name)
    }

    /// The name of the tag of this number and path.
    pub(super) fn name(&self, id: Revision, path: &str) -> Option<&str> {
        self.names.get(&(id, path.to_owned())).map(String::as_str)
    }

    pub(super) fn insert(&mut self, name: &str, tag: Tag) {
        self.names.insert((tag.id, tag.path.clone()), name.to_owned());
        self.by_name.insert(name.to_owned(), tag);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Tag> {
        let tag = self.by_name.remove(name)?;
        self.names.remove(&(tag.id, tag.path.clone()));
        Some(tag)
    }

    /// Notes for all tags by which they are picked, after they have been inserted.
    pub(super) fn note_picks(&mut self) {
        let mut picked = Vec::new();
        for (name, tag) in &self.by_name {
            if let Shows::Picks(picks) = &tag.shows {
                picked.extend(picks.now().map(|(path, id)| (id, path.to_owned(), name.clone())));
            }
        }
        for (id, path, by) in picked {
            self.set_picked(id, &path, &by, true);
        }
    }

    /// Notes that a global tag picks this tag, or no longer does.
    pub(super) fn set_picked(&mut self, id: Revision, path: &str, by: &str, is_picked: bool) {
        let name = self.names.get(&(id, path.to_owned()));
        let Some(tag) = name.and_then(|name| self.by_name.get_mut(name)) else { return };
        match is_picked {
            true => tag.picked_by.insert(by.to_owned()),
            false => tag.picked_by.remove(by),
        };
    }
}

/// Whether a path is `above`, or lies below it.
pub(super) fn is_under(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Tag {
    /// Whether a path is the tag's own or lies below it.
    pub fn is_of(&self, path: &str) -> bool {
        is_under(path, &self.path)
    }

    /// Whether the tag's own path is this one or lies below it.
    pub fn is_below(&self, path: &str) -> bool {
        is_under(&self.path, path)
    }

    /// A tag that is not locked, and not picked.
    pub(super) fn new(id: Revision, path: &str, description: &str, shows: Shows) -> Self {
        Self {
            id,
            path: path.to_owned(),
            description: description.to_owned(),
            shows,
            is_locked: false,
            picked_by: BTreeSet::new(),
        }
    }
}
