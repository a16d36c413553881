//! Room for what is new, and what is still needed. Only changes that are to be made are held to
//! these limits: what a journal holds was acknowledged, and is applied however much it is.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::change::{Batch, Change, Versioning};
use super::error::{CHANNELS, COPY, LISTED, PICKS, ROWS, Refusal, SCHEMAS, TAGS};
use super::folder::Selection;
use super::piece::MAX_TIME;
use super::state::State;
use super::tag::Shows;

/// What the changes of a group add to folders, which are known by their places.
#[derive(Debug, Default)]
pub(super) struct Adding {
    /// Objects and rows.
    sizes: HashMap<usize, (usize, usize)>,
    /// New channels.
    channels: HashMap<usize, HashSet<u32>>,
}

impl State {
    /// Adds what a change adds, which was checked.
    ///
    /// # Errors
    /// When there is no room for all of it, or what it deletes is needed. What is counted is of no
    /// use then.
    pub(super) fn check_room(&self, change: &Change, adding: &mut Adding) -> Result<(), Refusal> {
        match change {
            Change::Insert(batches) => {
                let tags = batches.iter().filter_map(|batch| batch.tag.as_deref());
                let new: BTreeSet<&str> = tags.filter(|name| self.tag(name).is_err()).collect();
                if !new.is_empty() {
                    TAGS.check(self.tags.len() + new.len())?;
                }
                batches.iter().try_for_each(|batch| self.check_batch(batch, adding))
            }
            Change::AddColumn { folder, .. } | Change::RenameColumn { folder, .. } => {
                let folder = self.folder(folder)?;
                SCHEMAS.check(folder.schema_changes() + 1)?;
                LISTED.check(folder.listed_columns() + folder.columns().len() + 1)
            }
            Change::GlobalTag { tags, .. } => PICKS.check(tags.len()),
            Change::Pick { name, tags, unpick } => {
                let Shows::Picks(picks) = &self.tag(name)?.shows else { return Ok(()) };
                PICKS.check(picks.count() + tags.len() + unpick.len())
            }
            Change::Clone { from, .. } => self.check_copy(from),
            Change::DeleteTag(name) => self.check_never_picked(name),
            _ => Ok(()),
        }
    }

    /// A tag of a folder of several versions is copied piece by piece.
    fn check_copy(&self, tag: &str) -> Result<(), Refusal> {
        let path = &self.tag(tag)?.path;
        let Ok(folder) = self.folder(path) else { return Ok(()) };
        if folder.versioning() == Versioning::Single {
            return Ok(());
        }
        let version = self.version(Some(tag), None, path)?;
        let pieces = folder.count((0, MAX_TIME), &Selection::default(), version)?;
        COPY.check(pieces as usize)
    }

    fn check_batch(&self, batch: &Batch, adding: &mut Adding) -> Result<(), Refusal> {
        let place = self.place(&batch.folder)?;
        let folder = &self.folders[place];
        let (objects, rows) = adding.sizes.entry(place).or_default();
        *objects += batch.objects.len();
        *rows += batch.payload.rows as usize;
        ROWS.check(folder.size().0 as usize + *objects)?;
        ROWS.check(folder.size().1 as usize + *rows)?;
        let numbers = batch.objects.iter().map(|object| object.channel);
        let new = adding.channels.entry(place).or_default();
        new.extend(numbers.filter(|number| !folder.channels.contains_key(number)));
        match new.is_empty() {
            true => Ok(()),
            false => CHANNELS.check(folder.channels.len() + new.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Added, COLUMNS, Entry, Group, Object, Table};

    fn folder(state: &mut State, versioning: Versioning) {
        let (path, description) = ("/f".to_owned(), String::new());
        let change = Change::CreateFolder { path, description, versioning, columns: Vec::new() };
        make(state, change).expect("made");
    }

    fn make(state: &mut State, change: Change) -> Result<Entry, Refusal> {
        let mut group = Group::default();
        let added = group.add(state, change, 0)?;
        assert!(matches!(added, Added::At(_)));
        let made = group.entries()[0].clone();
        state.apply_group(group);
        Ok(made)
    }

    fn objects(channels: impl IntoIterator<Item = u32>, tag: Option<&str>) -> Batch {
        let object = |channel| Object { channel, since: 0, until: 1, records: 0 };
        Batch {
            folder: "/f".to_owned(),
            tag: tag.map(str::to_owned),
            only_tag: false,
            objects: channels.into_iter().map(object).collect(),
            payload: Table::default(),
        }
    }

    fn insert(channels: impl IntoIterator<Item = u32>) -> Change {
        Change::Insert(vec![objects(channels, None)])
    }

    #[test]
    fn changes_of_a_group_and_batches_of_a_change_are_counted_together() {
        let mut state = State::default();
        folder(&mut state, Versioning::Single);
        let most = CHANNELS.most as u32;
        let full = make(&mut state, insert(0..most - 1)).expect("there is room");
        let mut group = Group::default();
        assert_eq!(group.add(&state, insert([most]), 0), Ok(Added::At(3)));
        let second = insert([most + 1]);
        assert_eq!(group.add(&state, second.clone(), 0), Ok(Added::Later(second.clone())));
        state.apply_group(group);
        let refused = Group::default().add(&state, second, 0);
        assert!(matches!(refused, Err(Refusal::TooMany(..))), "{refused:?}");
        let both = [most + 1, most + 2].map(|channel| objects([channel], None));
        let refused = Group::default().add(&state, Change::Insert(both.to_vec()), 0);
        assert!(matches!(refused, Err(Refusal::TooMany(..))), "{refused:?}");
        let name = |channel, name: &str| {
            let (folder, name) = ("/f".to_owned(), name.to_owned());
            Change::NameChannel { folder, channel, name }
        };
        make(&mut state, name(0, "one of those that are there")).expect("no new channel");
        assert!(matches!(make(&mut state, name(most + 1, "new")), Err(Refusal::TooMany(..))));

        // A journal may hold more than the limit of today.
        let mut again = State::default();
        folder(&mut again, Versioning::Single);
        again.replay(full).expect("as it was");
        let change = insert([most, most + 1, most + 2]);
        again.replay(Entry { revision: 3, time_us: 0, change }).expect("as it was made");
    }

    #[test]
    fn columns_change_a_limited_number_of_times() {
        let mut state = State::default();
        folder(&mut state, Versioning::Multi);
        let rename = |n: u64| {
            let [from, to] = [n, n + 1].map(|n| format!("c{n}"));
            Change::RenameColumn { folder: "/f".to_owned(), from, to }
        };
        let column =
            super::super::ColumnSpec { name: "c1".to_owned(), kind: super::super::Kind::Bool };
        make(&mut state, Change::AddColumn { folder: "/f".to_owned(), column }).expect("added");
        for n in 1..SCHEMAS.most {
            make(&mut state, rename(n)).expect("there is room");
        }
        assert!(matches!(make(&mut state, rename(SCHEMAS.most)), Err(Refusal::TooMany(..))));
        // Of a wide folder less often: each list of its columns is kept.
        let columns = (0..COLUMNS.most).map(|n| super::super::ColumnSpec {
            name: format!("c{n}"),
            kind: super::super::Kind::Bool,
        });
        let (path, description, versioning) = ("/w".to_owned(), String::new(), Versioning::Multi);
        let columns = columns.collect();
        make(&mut state, Change::CreateFolder { path, description, versioning, columns })
            .expect("made");
        let rename = |n: u64| {
            let [from, to] = [n, n + 1].map(|n| if n == 0 { "c0".into() } else { format!("d{n}") });
            Change::RenameColumn { folder: "/w".to_owned(), from, to }
        };
        let most = LISTED.most / COLUMNS.most - 2;
        for n in 0..most {
            make(&mut state, rename(n)).expect("there is room");
        }
        assert!(matches!(make(&mut state, rename(most)), Err(Refusal::TooMany(..))));
    }

    #[test]
    fn what_a_global_tag_has_picked_is_limited() {
        let mut state = State::default();
        folder(&mut state, Versioning::Multi);
        let tag = |name: &str, path: &str, tags: Option<&str>| {
            let (name, path, description) = (name.to_owned(), path.to_owned(), String::new());
            match tags {
                None => Change::Tag { name, path, description, revision: None },
                Some(picked) => {
                    Change::GlobalTag { name, path, description, tags: vec![picked.to_owned()] }
                }
            }
        };
        make(&mut state, tag("one", "/f", None)).expect("made");
        make(&mut state, tag("all", "/", Some("one"))).expect("made");
        let pick = || Change::Pick {
            name: "all".to_owned(),
            tags: vec!["one".to_owned()],
            unpick: Vec::new(),
        };
        for _ in 1..PICKS.most {
            make(&mut state, pick()).expect("there is room");
        }
        assert!(matches!(make(&mut state, pick()), Err(Refusal::TooMany(..))));
        let view = state.view(Some("all"), Some(4), "/").expect("a view");
        assert!(state.slice("/", 0, view).is_ok());
    }

    #[test]
    fn ranges_of_a_journal_that_are_none_are_refused() {
        let mut state = State::default();
        folder(&mut state, Versioning::Single);
        make(&mut state, insert([3])).expect("inserted");
        let channels = super::super::Numbers::In(vec![(5, 2)]);
        let change = Change::Truncate { folder: "/f".to_owned(), until: 1, channels };
        assert!(state.replay(Entry { revision: 3, time_us: 0, change }).is_err());
    }
}
