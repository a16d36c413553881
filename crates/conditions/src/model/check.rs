//! Which changes are refused. What passes here can be applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::change::{Batch, Change, ColumnSpec, Numbers, Object, Versioning};
use super::error::{
    BATCH, BATCH_ROWS, CHANNELS, COLUMNS, NAME_BYTES, NEW_TAGS, NUMBERS, Refusal, TAGS, TEXT_BYTES,
};
use super::folder::Folder;
use super::piece::MAX_TIME;
use super::segment::Damage;
use super::state::{Node, State};
use super::tag::Shows;
use super::view::View;
use crate::nopayload::model::{self as nopayload, Touched, Touches};

/// What a change was checked against: two changes whose footprints are apart can be applied in any
/// order, each as it was checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Footprint {
    /// Everything.
    Alone,
    /// What these channels show, each with the place of its folder.
    Channels(Vec<(usize, u32)>),
}

const ONE_FOLDER: &str = "and a tag of users has one folder";

impl State {
    /// Whether a change can be applied now.
    pub(super) fn check(&self, change: &Change) -> Result<Footprint, Refusal> {
        match change {
            Change::CreateFolder { path, description, columns, .. } => {
                check_path(path)?;
                if path == "/" {
                    return Err(Refusal::Exists("the folder set", path.clone()));
                }
                check_text(description)?;
                COLUMNS.check(columns.len())?;
                check_columns(columns)?;
                if let Some((other, _)) = self.nodes_under(path).next() {
                    return Err(Refusal::Exists("a folder or set", other.clone()));
                }
                self.check_parents(path)?;
                self.check_folders()?;
            }
            Change::CreateSet { path, description } => {
                check_path(path)?;
                check_text(description)?;
                if self.nodes.contains_key(path.trim_end_matches('/')) {
                    return Err(Refusal::Exists("a folder or set", path.clone()));
                }
                self.check_parents(path)?;
                self.check_folders()?;
            }
            Change::AddColumn { folder, column } => {
                let mut columns = self.folder(folder)?.columns().to_vec();
                columns.push(column.clone());
                COLUMNS.check(columns.len())?;
                check_columns(&columns)?;
            }
            Change::RenameColumn { folder, from, to } => {
                let mut columns = self.folder(folder)?.columns().to_vec();
                let named = columns.iter_mut().find(|column| column.name == *from);
                let missing = || Refusal::NoColumn(folder.clone(), from.clone());
                named.ok_or_else(missing)?.name.clone_from(to);
                check_columns(&columns)?;
            }
            Change::NameChannel { folder, channel, name } => {
                check_name("channel", name)?;
                let folder = self.folder(folder)?;
                if folder.names.get(name).is_some_and(|number| number != channel) {
                    return Err(Refusal::Exists("channel", name.clone()));
                }
                if !folder.channels.contains_key(channel) {
                    CHANNELS.check(folder.channels.len() + 1)?;
                }
            }
            Change::Insert(batches) => return self.check_insert(batches),
            Change::Nopayload(change) => return self.check_nopayload(change),
            Change::Truncate { folder, until, channels } => {
                check_numbers(channels)?;
                let folder = self.folder(folder)?;
                if *until > MAX_TIME {
                    return Err(Refusal::BadInterval(*until, MAX_TIME));
                }
                if folder.versioning() == Versioning::Multi {
                    return Err(Refusal::ManyVersions(folder.path().to_owned()));
                }
            }
            Change::Tag { .. }
            | Change::GlobalTag { .. }
            | Change::Pick { .. }
            | Change::Clone { .. }
            | Change::DeleteTag(_)
            | Change::LockTag(..) => self.check_tag(change)?,
        }
        Ok(Footprint::Alone)
    }

    /// Refuses to change the data of folders that have a damaged segment. What a journal holds
    /// has passed that.
    pub(super) fn check_whole(&self, change: &Change) -> Result<(), Refusal> {
        let check = |path: &String| match self.folder(path) {
            Ok(folder) => Ok(folder.contents.check_whole()?),
            Err(_) => Ok(()),
        };
        match change {
            Change::Insert(batches) => batches.iter().try_for_each(|batch| check(&batch.folder)),
            Change::Truncate { folder, .. } => check(folder),
            Change::Clone { from, .. } => self.tag(from).map_or(Ok(()), |tag| check(&tag.path)),
            _ => Ok(()),
        }
    }

    fn check_nopayload(&self, change: &nopayload::Change) -> Result<Footprint, Refusal> {
        let Touches::Only(touched) = self.nopayload.check(change)? else {
            return Ok(Footprint::Alone);
        };
        // Places that no folder has.
        let place = |touched: Touched| match touched {
            Touched::List(id) => (usize::MAX, id),
            Touched::Iov(id) => (usize::MAX - 1, id),
        };
        Ok(Footprint::Channels(touched.into_iter().map(place).collect()))
    }

    fn check_tag(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Tag { name, path, description, revision } => {
                self.check_new_tag(name, description)?;
                check_path(path)?;
                State::check_path(self, path)?;
                let last = self.revision();
                match revision.filter(|revision| *revision > last) {
                    Some(revision) => Err(Refusal::NoRevision(revision, last)),
                    None => Ok(()),
                }
            }
            Change::Clone { from, to, description } => {
                self.tag(from)?;
                self.check_new_tag(to, description)
            }
            Change::GlobalTag { name, path, description, tags } => {
                self.check_new_tag(name, description)?;
                check_path(path)?;
                State::check_path(self, path)?;
                self.check_picks(path, tags)
            }
            Change::Pick { name, tags, unpick } => self.check_pick(name, tags, unpick),
            Change::DeleteTag(name) => {
                self.check_unlocked(name)?;
                match self.tag(name)?.picked_by.first() {
                    Some(by) => Err(Refusal::Picked(name.clone(), by.clone())),
                    None => Ok(()),
                }
            }
            Change::LockTag(name, _) => self.tag(name).map(drop),
            _ => Ok(()),
        }
    }

    fn check_new_tag(&self, name: &str, description: &str) -> Result<(), Refusal> {
        check_name("tag", name)?;
        check_text(description)?;
        TAGS.check(self.tags.len() + 1)?;
        match self.tags.get(name).is_some() || name == super::HEAD {
            true => Err(Refusal::Exists("tag", name.to_owned())),
            false => Ok(()),
        }
    }

    /// Refuses what would lie in a folder: only sets hold others.
    fn check_parents(&self, path: &str) -> Result<(), Refusal> {
        for (end, _) in path.match_indices('/').skip(1) {
            if let Some(Node::Folder(_)) = self.nodes.get(&path[..end]) {
                return Err(Refusal::Exists("folder", path[..end].to_owned()));
            }
        }
        Ok(())
    }

    fn check_insert(&self, batches: &[Batch]) -> Result<Footprint, Refusal> {
        let empty = batches.iter().position(|batch| batch.objects.is_empty());
        if let Some(empty) = empty.or(batches.is_empty().then_some(0)) {
            return Err(Refusal::NoObjects(empty));
        }
        let objects = batches.iter().map(|batch| batch.objects.len()).sum();
        BATCH.check(objects)?;
        BATCH_ROWS.check(batches.iter().map(|batch| batch.payload.rows as usize).sum())?;
        // Tags that the change makes, each with its folder.
        let mut made: HashMap<&str, &str> = HashMap::new();
        let mut folders: BTreeMap<usize, Concerned> = BTreeMap::new();
        for batch in batches {
            let place = self.place(&batch.folder)?;
            let folder = &self.folders[place];
            check_payload(folder, batch)?;
            if let Some(tag) = self.check_batch_tag(folder, batch)? {
                let path = *made.entry(tag).or_insert(folder.path());
                if path != folder.path() {
                    let path = path.to_owned();
                    return Err(Refusal::OtherTag(tag.to_owned(), path, ONE_FOLDER));
                }
                // A tag is known by its folder and the revision that made it.
                let here = made.values().filter(|path| **path == folder.path());
                NEW_TAGS.check(here.count())?;
            }
            let is_whole = folder.contents.check_whole().is_ok();
            let touched = folders.entry(place).or_default();
            for (number, object) in batch.objects.iter().enumerate() {
                let Object { channel, since, until, .. } = *object;
                if since >= until || until > MAX_TIME {
                    return Err(Refusal::BadInterval(since, until));
                }
                let pending = touched.channel(channel);
                if folder.versioning() == Versioning::Single
                    && is_whole
                    && let Some(head) = folder.contents.view(None)
                    && let Some((met_since, met_until)) = pending.add(head, object)?
                {
                    let (folder, place) = (folder.path().to_owned(), number);
                    #[rustfmt::skip]
                    return Err(Refusal::Overlap {
                        folder, place, channel, since, until, met_since, met_until,
                    });
                }
            }
        }
        if !made.is_empty() {
            return Ok(Footprint::Alone);
        }
        let channels = folders.into_iter().flat_map(|(place, touched)| {
            touched.channels.into_iter().map(move |(number, _)| (place, number))
        });
        Ok(Footprint::Channels(channels.collect()))
    }

    /// Returns the batch's tag if the batch makes it.
    fn check_batch_tag<'a>(
        &self,
        folder: &Folder,
        batch: &'a Batch,
    ) -> Result<Option<&'a str>, Refusal> {
        let path = folder.path().to_owned();
        let Some(name) = &batch.tag else {
            return match batch.only_tag {
                true => Err(Refusal::NoTag(String::new())),
                false => Ok(None),
            };
        };
        if folder.versioning() == Versioning::Single {
            return Err(Refusal::OneVersion(path));
        }
        match self.tags.get(name) {
            None => {
                self.check_new_tag(name, "")?;
                Ok(Some(name))
            }
            Some(tag) if tag.path != path => {
                Err(Refusal::OtherTag(name.clone(), tag.path.clone(), ONE_FOLDER))
            }
            Some(tag) if tag.shows != Shows::User => {
                Err(Refusal::OtherTag(name.clone(), path, "and shows what the head once did"))
            }
            Some(_) => self.check_unlocked(name).map(|()| None),
        }
    }
}

/// The channels of a folder that objects of one change are of.
#[derive(Debug, Default)]
struct Concerned {
    channels: Vec<(u32, Pending)>,
    /// Where each is in that list.
    places: HashMap<u32, usize>,
    /// Where the last one is that was asked for.
    last: usize,
}

impl Concerned {
    fn channel(&mut self, number: u32) -> &mut Pending {
        // Objects come by channel, or by time with the channels in the same order again and again.
        let next = if self.last + 1 < self.channels.len() { self.last + 1 } else { 0 };
        let is_it = |place: &usize| self.channels.get(*place).is_some_and(|one| one.0 == number);
        let near = [next, self.last].into_iter().find(is_it);
        self.last = near.unwrap_or_else(|| {
            *self.places.entry(number).or_insert_with(|| {
                self.channels.push((number, Pending::default()));
                self.channels.len() - 1
            })
        });
        &mut self.channels[self.last].1
    }
}

/// What objects of one change do to a channel of a folder of one version, before they are applied.
#[derive(Debug, Default)]
struct Pending {
    /// Where the open end of what is there is cut.
    cut: Option<u64>,
    /// The objects, when they start and end, as long as each comes after those before it.
    sorted: Vec<(u64, u64)>,
    /// All of them from then on.
    others: BTreeMap<u64, u64>,
}

impl Pending {
    /// Adds an object, unless it meets another, whose interval is returned then.
    fn add(&mut self, head: &View, object: &Object) -> Result<Option<(u64, u64)>, Damage> {
        let Object { channel, since, until, .. } = *object;
        let met = head.first_two(channel, (since, until))?;
        if let Some(after) = met.iter().find(|(begin, _)| *begin > since) {
            return Ok(Some(*after));
        }
        let mut cuts = false;
        if let Some((begin, met_until)) = met.first().copied() {
            let is_open = met_until == MAX_TIME && self.cut.is_none();
            let end = if met_until == MAX_TIME { self.cut } else { None };
            let end = end.unwrap_or(met_until);
            cuts = is_open && begin < since;
            if end > since && !cuts {
                return Ok(Some((begin, end)));
            }
        }
        let met = self.place(since, until);
        if met.is_none() && cuts {
            self.cut = Some(since);
        }
        Ok(met)
    }

    /// Puts an object among those of the change.
    fn place(&mut self, since: u64, until: u64) -> Option<(u64, u64)> {
        let is_after = self.sorted.last().is_none_or(|last| last.0 < since);
        if !is_after {
            self.others.extend(self.sorted.drain(..));
        }
        let is_sorted = is_after && self.others.is_empty();
        let before = match is_sorted {
            true => self.sorted.last_mut().map(|(first, end)| (*first, end)),
            false => self.others.range_mut(..until).next_back().map(|(first, end)| (*first, end)),
        };
        if let Some((first, end)) = before {
            let is_cut = *end == MAX_TIME && first < since;
            if *end > since && !is_cut {
                return Some((first, *end));
            }
            if is_cut {
                *end = since;
            }
        }
        match is_sorted {
            true => self.sorted.push((since, until)),
            false => drop(self.others.insert(since, until)),
        }
        None
    }
}

fn check_payload(folder: &Folder, batch: &Batch) -> Result<(), Refusal> {
    let (columns, payload) = (folder.columns(), &batch.payload);
    let kinds = payload.columns.iter().map(super::table::Cells::kind);
    let records: u64 = batch.objects.iter().map(|object| u64::from(object.records)).sum();
    let fits = payload.is_sound()
        && kinds.eq(columns.iter().map(|column| column.kind))
        && records == u64::from(payload.rows);
    if !fits {
        return Err(Refusal::BadPayload(folder.path().to_owned()));
    }
    // Whatever a journal holds: objects and rows have numbers of 32 bits.
    let (objects, rows) = folder.size();
    NUMBERS.check(objects as usize + batch.objects.len())?;
    NUMBERS.check(rows as usize + payload.rows as usize)
}

/// A journal's ranges are read as they are.
fn check_numbers(numbers: &Numbers) -> Result<(), Refusal> {
    match numbers.ranges().iter().find(|(first, last)| first > last) {
        Some((first, last)) => Err(Refusal::BadName("range", format!("{first}-{last}"))),
        None => Ok(()),
    }
}

fn check_columns(columns: &[ColumnSpec]) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    for column in columns {
        check_name("column", &column.name)?;
        if !names.insert(&column.name) {
            return Err(Refusal::Exists("column", column.name.clone()));
        }
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), Refusal> {
    let parts = || path.split('/').skip(1);
    let is_good = path == "/"
        || path.starts_with('/')
            && parts().all(|part| check_name("path", part).is_ok() && part != "." && part != "..");
    if !is_good || path.len() > TEXT_BYTES {
        return Err(Refusal::BadName("folder", path.to_owned()));
    }
    Ok(())
}

/// A name has one byte to [`NAME_BYTES`], no slash, no control character, and no space at an end.
fn check_name(of: &'static str, name: &str) -> Result<(), Refusal> {
    let is_good = (1..=NAME_BYTES).contains(&name.len())
        && name.trim() == name
        && !name.contains(|c: char| c == '/' || c.is_control());
    match is_good {
        true => Ok(()),
        false => Err(Refusal::BadName(of, name.to_owned())),
    }
}

fn check_text(text: &str) -> Result<(), Refusal> {
    match text.len() <= TEXT_BYTES {
        true => Ok(()),
        false => Err(Refusal::LongDescription(text.len())),
    }
}
