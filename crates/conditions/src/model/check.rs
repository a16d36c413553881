//! Which changes are refused. What passes here can be applied.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::change::{Batch, Change, ColumnSpec, Object, Versioning};
use super::error::{
    BATCH, BATCH_ROWS, CHANNELS, COLUMNS, NEW_TAGS, ROWS, Refusal, TAGS, TEXT_BYTES,
};
use super::folder::Folder;
use super::piece::MAX_TIME;
use super::state::{Node, Shows, State};

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
                self.check_room()?;
            }
            Change::CreateSet { path, description } => {
                check_path(path)?;
                check_text(description)?;
                if self.nodes.contains_key(path.trim_end_matches('/')) {
                    return Err(Refusal::Exists("a folder or set", path.clone()));
                }
                self.check_parents(path)?;
                self.check_room()?;
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
                CHANNELS.check(folder.channels.len() + 1)?;
            }
            Change::Insert(batches) => return self.check_insert(batches),
            Change::Truncate { folder, until, .. } => {
                let folder = self.folder(folder)?;
                if *until > MAX_TIME {
                    return Err(Refusal::BadInterval(*until, MAX_TIME));
                }
                if folder.versioning() == Versioning::Multi {
                    let why = "which has several versions: insert what is to be shown";
                    let path = folder.path().to_owned();
                    return Err(Refusal::OtherTag(super::HEAD.to_owned(), path, why));
                }
            }
            Change::Tag { .. }
            | Change::Clone { .. }
            | Change::DeleteTag(_)
            | Change::LockTag(..) => self.check_tag(change)?,
        }
        Ok(Footprint::Alone)
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
            Change::DeleteTag(name) => match self.tag(name)?.is_locked {
                true => Err(Refusal::Locked(name.clone())),
                false => Ok(()),
            },
            Change::LockTag(name, _) => self.tag(name).map(drop),
            _ => Ok(()),
        }
    }

    fn check_new_tag(&self, name: &str, description: &str) -> Result<(), Refusal> {
        check_name("tag", name)?;
        check_text(description)?;
        TAGS.check(self.tags.len() + 1)?;
        match self.tags.contains_key(name) || name == super::HEAD {
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
        let objects = batches.iter().map(|batch| batch.objects.len()).sum();
        BATCH.check(objects)?;
        BATCH_ROWS.check(batches.iter().map(|batch| batch.payload.rows as usize).sum())?;
        let mut footprint = Vec::new();
        // Tags that the change makes, each with its folder.
        let mut made: HashMap<&str, &str> = HashMap::new();
        let mut pending: HashMap<(usize, u32), Pending> = HashMap::new();
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
            let mut new: HashSet<u32> = HashSet::new();
            for (number, object) in batch.objects.iter().enumerate() {
                let Object { channel, since, until, .. } = *object;
                if since >= until || until > MAX_TIME {
                    return Err(Refusal::BadInterval(since, until));
                }
                if !folder.channels.contains_key(&channel) {
                    new.insert(channel);
                }
                if folder.versioning() == Versioning::Single {
                    let pending = pending.entry((place, channel)).or_default();
                    let met = pending.add(folder, object).map(|(met_since, met_until)| {
                        let (folder, place) = (folder.path().to_owned(), number);
                        Refusal::Overlap {
                            folder,
                            place,
                            channel,
                            since,
                            until,
                            met_since,
                            met_until,
                        }
                    });
                    met.map_or(Ok(()), Err)?;
                }
            }
            CHANNELS.check(folder.channels.len() + new.len())?;
            footprint.extend(batch.objects.iter().map(|object| (place, object.channel)));
        }
        if !made.is_empty() {
            return Ok(Footprint::Alone);
        }
        footprint.sort_unstable();
        footprint.dedup();
        Ok(Footprint::Channels(footprint))
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
            Some(tag) if tag.is_locked => Err(Refusal::Locked(name.clone())),
            Some(_) => Ok(None),
        }
    }
}

/// What objects of one change do to a channel of a folder of one version, before they are applied.
#[derive(Debug, Default)]
struct Pending {
    /// Where the open end of what is there is cut.
    cut: Option<u64>,
    /// The objects: when they start and end.
    added: BTreeMap<u64, u64>,
}

impl Pending {
    /// Adds an object, unless it meets another, whose interval is returned then.
    fn add(&mut self, folder: &Folder, object: &Object) -> Option<(u64, u64)> {
        let Object { channel, since, until, .. } = *object;
        let shown = super::folder::Version { revision: u64::MAX, user_tag: None };
        let timeline = folder.channels.get(&channel).and_then(|channel| channel.shown(shown));
        let (before, after) = timeline.map_or((None, None), |timeline| timeline.nearest(since));
        if let Some(after) = after.filter(|after| after.since < until) {
            return Some((after.since, after.until));
        }
        let mut cuts = false;
        if let Some(before) = before {
            let is_open = before.until == MAX_TIME && self.cut.is_none();
            let end = if before.until == MAX_TIME { self.cut } else { None };
            let end = end.unwrap_or(before.until);
            cuts = is_open && before.since < since;
            if end > since && !cuts {
                return Some((before.since, end));
            }
        }
        if let Some((first, end)) = self.added.range_mut(..until).next_back() {
            let is_cut = *end == MAX_TIME && *first < since;
            if *end > since && !is_cut {
                return Some((*first, *end));
            }
            if is_cut {
                *end = since;
            }
        }
        if cuts {
            self.cut = Some(since);
        }
        self.added.insert(since, until);
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
    let (objects, rows) = folder.size();
    ROWS.check(objects + batch.objects.len())?;
    ROWS.check(rows as usize + payload.rows as usize)
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

/// A name has one to 255 bytes, no slash, no control character, and no space at an end.
fn check_name(of: &'static str, name: &str) -> Result<(), Refusal> {
    let is_good = (1..=255).contains(&name.len())
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
        false => Err(Refusal::BadName("description", text.chars().take(40).collect())),
    }
}
