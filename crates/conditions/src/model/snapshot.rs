//! The state without its data, as the records of a journal's snapshot: they name the segments that
//! hold the data.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::base::{Base, Block, Part, Unit};
use super::change::{ColumnSpec, Versioning};
use super::contents::Contents;
use super::folder::Folder;
use super::piece::Revision;
use super::recent::Recent;
use super::segment::{Damage, Segment, SegmentKind, Source};
use super::state::{Node, State};
use super::tag::{Picked, Picks, Shows, Tag};

/// The version of the records, which are postcard's (its wire format 1.0).
const VERSION: u8 = 1;

/// The most items of one record.
const ITEMS: usize = 4_096;

/// The most bytes of a part of what NoPayloadDB's interface shows.
const NOPAYLOAD_BYTES: usize = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
enum Record {
    Begin {
        version: u8,
    },
    /// When revisions came, each after the one before.
    Times(Vec<i64>),
    Set {
        path: String,
        description: String,
    },
    Folder {
        path: String,
        description: String,
        versioning: Versioning,
        inserted: (u64, u64),
    },
    /// Of the folder before.
    Schema(Revision, Vec<ColumnSpec>),
    /// Of the folder before.
    Channels(Vec<(u32, Option<String>)>),
    Tag {
        name: String,
        id: Revision,
        path: String,
        description: String,
        shows: Shown,
        is_locked: bool,
    },
    /// Of the tag before: what it picked for a path, from revisions on. One path may have several.
    Picked(String, Vec<Picked>),
    /// What is sealed of a folder, by its place.
    View {
        folder: u64,
        tag: Option<Revision>,
        through: Revision,
    },
    /// Of the view before: since, number, bytes, checksum.
    Blocks(Vec<(u64, u64, u64, u32)>),
    /// As blocks.
    Past(Vec<(u64, u64, u32)>),
    /// The next part of what NoPayloadDB's interface shows.
    Nopayload(#[serde(with = "serde_bytes")] Vec<u8>),
    End {
        next_segment: u64,
    },
}

/// What a tag shows.
#[derive(Debug, Serialize, Deserialize)]
enum Shown {
    Head(Revision),
    User,
    Picks,
}

/// Why records are no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSnapshot {
    /// It is of another version.
    #[error("a snapshot of version {0}, and this program knows version {VERSION}")]
    Version(u8),
    /// A record can't be read.
    #[error("no record of a snapshot: {0}")]
    Bytes(String),
    /// Records contradict each other.
    #[error("the snapshot contradicts itself: {0}")]
    Contradiction(&'static str),
}

use BadSnapshot::Contradiction;

fn encode(record: &Record) -> Vec<u8> {
    // Nothing of a record is refused by postcard, and a vector takes all that comes.
    postcard::to_extend(record, Vec::new()).unwrap_or_default()
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, BadSnapshot> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(BadSnapshot::Bytes("it has bytes too many".to_owned())),
        Err(error) => Err(BadSnapshot::Bytes(error.to_string())),
    }
}

/// The records of all but the data.
pub(super) fn records(state: &State) -> Vec<Vec<u8>> {
    let mut records = vec![encode(&Record::Begin { version: VERSION })];
    let mut last = 0;
    for times in state.times_us.chunks(ITEMS) {
        let after = |time: &i64| time.wrapping_sub(std::mem::replace(&mut last, *time));
        records.push(encode(&Record::Times(times.iter().map(after).collect())));
    }
    for (path, node) in &state.nodes {
        if let Node::Set(description) = node {
            let (path, description) = (path.clone(), description.clone());
            records.push(encode(&Record::Set { path, description }));
        }
    }
    for folder in &state.folders {
        records.push(encode(&Record::Folder {
            path: folder.path().to_owned(),
            description: folder.description().to_owned(),
            versioning: folder.versioning(),
            inserted: folder.inserted,
        }));
        let schemas = folder.schemas.iter();
        records
            .extend(schemas.map(|(from, columns)| encode(&Record::Schema(*from, columns.clone()))));
        let channels: Vec<_> =
            folder.channels.iter().map(|(number, name)| (*number, name.clone())).collect();
        let channels = channels.chunks(ITEMS).map(|some| encode(&Record::Channels(some.to_vec())));
        records.extend(channels);
    }
    records.extend(state.tags().flat_map(|(name, tag)| tag_records(name, tag)));
    // As in `encode`.
    let nopayload = postcard::to_extend(&state.nopayload, Vec::new()).unwrap_or_default();
    let parts = nopayload.chunks(NOPAYLOAD_BYTES);
    records.extend(parts.map(|part| encode(&Record::Nopayload(part.to_vec()))));
    records
}

/// The records of a tag; which global tags pick it follows from theirs.
fn tag_records(name: &str, tag: &Tag) -> Vec<Vec<u8>> {
    let Tag { id, path, description, shows, is_locked, picked_by: _ } = tag;
    let (name, path, description) = (name.to_owned(), path.clone(), description.clone());
    let (shows, picks) = match shows {
        Shows::Head(revision) => (Shown::Head(*revision), None),
        Shows::User => (Shown::User, None),
        Shows::Picks(picks) => (Shown::Picks, Some(picks)),
    };
    let (id, is_locked) = (*id, *is_locked);
    let mut records = vec![encode(&Record::Tag { name, id, path, description, shows, is_locked })];
    for (path, history) in picks.into_iter().flat_map(|picks| &picks.0) {
        let some = |some: &[Picked]| encode(&Record::Picked(path.clone(), some.to_vec()));
        records.extend(history.chunks(ITEMS).map(some));
    }
    records
}

/// The records of what is sealed, with which a snapshot ends.
pub(super) fn base_records(bases: &BTreeMap<Unit, Base>, next_segment: u64) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for ((folder, tag), Base { through, blocks, past }) in bases {
        let (folder, tag, through) = (*folder as u64, *tag, *through);
        records.push(encode(&Record::View { folder, tag, through }));
        for blocks in blocks.chunks(ITEMS) {
            let block =
                |Block { since, part }: &Block| (*since, part.id, part.bytes, part.checksum);
            records.push(encode(&Record::Blocks(blocks.iter().map(block).collect())));
        }
        for past in past.chunks(ITEMS) {
            let part = |part: &Arc<Part>| (part.id, part.bytes, part.checksum);
            records.push(encode(&Record::Past(past.iter().map(part).collect())));
        }
    }
    records.push(encode(&Record::End { next_segment }));
    records
}

/// Takes the records of a snapshot, one after another.
#[derive(Debug, Default)]
pub struct Loader {
    state: State,
    views: Vec<Sealed>,
    nopayload: Vec<u8>,
    /// The name of the last tag.
    tag: String,
    is_begun: bool,
    is_ended: bool,
}

#[derive(Debug)]
struct Sealed {
    unit: Unit,
    through: Revision,
    blocks: Vec<(u64, u64, u64, u32)>,
    past: Vec<(u64, u64, u32)>,
}

impl Loader {
    /// Takes the next record.
    ///
    /// # Errors
    /// When it is none that can come here.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<(), BadSnapshot> {
        match decode(bytes)? {
            Record::Begin { version: VERSION } => {
                self.is_begun = true;
                return Ok(());
            }
            Record::Begin { version } => return Err(BadSnapshot::Version(version)),
            _ if !self.is_begun || self.is_ended => return Err(Contradiction("where it begins")),
            Record::Nopayload(part) => self.nopayload.extend(part),
            Record::End { next_segment } => {
                self.state.nopayload = decode(&std::mem::take(&mut self.nopayload))?;
                self.state.next_segment = next_segment;
                self.is_ended = true;
            }
            Record::Times(times) => {
                for after in times {
                    let last = self.state.times_us.last().copied();
                    let time = last.unwrap_or(0).checked_add(after);
                    let time = time.filter(|time| last.is_none_or(|last| last <= *time));
                    self.state.times_us.push(time.ok_or(Contradiction("times of revisions"))?);
                }
            }
            Record::View { folder, tag, through } => {
                let unit = (usize::try_from(folder).unwrap_or(usize::MAX), tag);
                let (blocks, past) = (Vec::new(), Vec::new());
                self.views.push(Sealed { unit, through, blocks, past });
            }
            Record::Blocks(more) => {
                let view = self.views.last_mut().ok_or(Contradiction("blocks of nothing"))?;
                view.blocks.extend(more);
            }
            Record::Past(more) => {
                let view = self.views.last_mut().ok_or(Contradiction("a past of nothing"))?;
                view.past.extend(more);
            }
            Record::Tag { name, id, path, description, shows, is_locked } => {
                let shows = match shows {
                    Shown::Head(revision) => Shows::Head(revision),
                    Shown::User => Shows::User,
                    Shown::Picks => Shows::Picks(Picks::default()),
                };
                let tag = Tag { is_locked, ..Tag::new(id, &path, &description, shows) };
                self.state.tags.insert(&name, tag);
                self.tag = name;
            }
            Record::Picked(path, history) => {
                let tag = self.state.tags.get_mut(&self.tag).map(|tag| &mut tag.shows);
                let Some(Shows::Picks(picks)) = tag else {
                    return Err(Contradiction("what no global tag picks"));
                };
                picks.0.entry(path).or_default().extend(history);
            }
            record => self.apply_to_state(record)?,
        }
        Ok(())
    }

    fn apply_to_state(&mut self, record: Record) -> Result<(), BadSnapshot> {
        let state = &mut self.state;
        let last = Contradiction("columns or channels of no folder");
        match record {
            Record::Set { path, description } => {
                if state.nodes.insert(path, Node::Set(description)).is_some() {
                    return Err(Contradiction("a path twice"));
                }
            }
            Record::Folder { path, description, versioning, inserted } => {
                let node = Node::Folder(state.folders.len());
                if state.nodes.insert(path.clone(), node).is_some() {
                    return Err(Contradiction("a path twice"));
                }
                let mut folder = Folder::new(&path, &description, versioning);
                folder.inserted = inserted;
                state.folders.push(folder);
            }
            Record::Schema(from, columns) => {
                let folder = state.folders.last_mut().ok_or(last)?;
                if columns.len() < folder.columns().len() {
                    return Err(Contradiction("columns that are gone"));
                }
                folder.schemas.push((from, columns));
            }
            Record::Channels(channels) => {
                let folder = state.folders.last_mut().ok_or(last)?;
                for (number, name) in channels {
                    folder.names.extend(name.clone().map(|name| (name, number)));
                    folder.channels.insert(number, name);
                }
            }
            _ => return Err(Contradiction("a record out of place")),
        }
        Ok(())
    }

    /// The number, size and checksum of every segment that is named so far.
    pub fn segments(&self) -> impl Iterator<Item = (u64, u64, u32)> {
        self.views.iter().flat_map(|view| {
            let blocks =
                view.blocks.iter().map(|(_, id, bytes, checksum)| (*id, *bytes, *checksum));
            blocks.chain(view.past.iter().copied())
        })
    }

    /// What every segment that is named so far has to be.
    ///
    /// # Errors
    /// When one is of a folder that isn't there.
    pub fn named(&self) -> Result<Vec<Named>, BadSnapshot> {
        let mut named = Vec::new();
        for Sealed { unit: (place, tag), blocks, past, .. } in &self.views {
            let folder =
                self.state.folders.get(*place).ok_or(Contradiction("data of no folder"))?;
            let (folder, tag) = (folder.made(), *tag);
            let of = |kind, (id, bytes, checksum)| Named { id, bytes, checksum, kind, folder, tag };
            let blocks = blocks.iter().map(|(_, id, bytes, checksum)| (*id, *bytes, *checksum));
            named.extend(blocks.map(|one| of(SegmentKind::Block, one)));
            named.extend(past.iter().map(|one| of(SegmentKind::Past, *one)));
        }
        Ok(named)
    }

    /// The state. `open` returns the bytes of the segment with a number, of this size, or why it
    /// can't be read: then what it holds is damaged, and all else is there.
    ///
    /// # Errors
    /// When the snapshot isn't whole.
    pub fn finish<B: Into<Source>>(
        mut self,
        open: &mut dyn FnMut(u64, u64) -> Result<B, String>,
    ) -> Result<State, BadSnapshot> {
        if !self.is_ended {
            return Err(Contradiction("it has no end"));
        }
        let mut bases: BTreeMap<usize, Vec<(Option<Revision>, Base)>> = BTreeMap::new();
        for Sealed { unit: (place, tag), through, blocks, past } in self.views {
            let folder = self.state.folders.get(place).ok_or(Contradiction("data of no folder"))?;
            let is_sorted = blocks.is_sorted_by(|one, other| one.0 < other.0)
                && blocks.first().is_none_or(|first| first.0 == 0);
            if !is_sorted {
                return Err(Contradiction("blocks out of order"));
            }
            let mut part = |kind, (id, bytes, checksum)| {
                self.state.segments.insert(id);
                let segment = segment(open, (kind, folder.made(), tag), (id, bytes, checksum));
                Arc::new(Part { id, bytes, checksum, segment: segment.map(Arc::new) })
            };
            let blocks = blocks.into_iter().map(|(since, id, bytes, checksum)| Block {
                since,
                part: part(SegmentKind::Block, (id, bytes, checksum)),
            });
            let blocks = blocks.collect();
            let past = past.into_iter().map(|one| part(SegmentKind::Past, one)).collect();
            bases.entry(place).or_default().push((tag, Base { through, blocks, past }));
        }
        for (place, folder) in self.state.folders.iter_mut().enumerate() {
            let kinds: Vec<_> = folder.columns().iter().map(|column| column.kind).collect();
            folder.contents = Contents::new(kinds, bases.remove(&place).unwrap_or_default());
        }
        self.state.tags.note_picks();
        self.state.recent = Recent::after(self.state.revision());
        Ok(self.state)
    }
}

/// A segment that a snapshot names.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its number.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    checksum: u32,
    kind: SegmentKind,
    folder: Revision,
    tag: Option<Revision>,
}

impl Named {
    /// What is damaged of it, where these are its bytes.
    pub fn damages(&self, content: Bytes) -> Vec<Damage> {
        let Self { id, bytes, checksum, kind, folder, tag } = *self;
        let mut open = |_, _| Ok(content.clone());
        match segment(&mut open, (kind, folder, tag), (id, bytes, checksum)) {
            Ok(segment) => segment.check(),
            Err(damage) => vec![damage],
        }
    }
}

/// Opens a segment that a snapshot names.
fn segment<B: Into<Source>>(
    open: &mut dyn FnMut(u64, u64) -> Result<B, String>,
    (kind, folder, tag): (SegmentKind, Revision, Option<Revision>),
    (id, size, checksum): (u64, u64, u32),
) -> Result<Segment, Damage> {
    let source = open(id, size).map_err(|why| Damage::unopened(id, why))?.into();
    if let Source::Whole(bytes) = &source
        && bytes.len() as u64 != size
    {
        let (is, at) = (bytes.len(), bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX)));
        return Err(Damage::of(id, at, format!("it has {is} bytes instead of {size}")));
    }
    let segment = Segment::open(id, source)?;
    if segment.checksum() != checksum || !segment.is_of(kind, folder, tag.unwrap_or(0)) {
        return Err(Damage::of(id, 0, "it is another segment than the snapshot names"));
    }
    Ok(segment)
}
