//! One folder: its columns, its channels, and its data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::base::Base;
use super::change::{ColumnSpec, Numbers, Versioning};
use super::condition::Condition;
use super::contents::{Contents, Touch};
use super::error::Refusal;
use super::piece::{Revision, Version};
use super::recent::Changed;
use super::shown::{Answer, Shown};
use super::view::Found;

/// Which channels and records are asked for: all of them where nothing is selected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// By number.
    pub numbers: Option<Numbers>,
    /// By name.
    pub names: Vec<String>,
    /// What records have to meet, all of it. An object without such a record is left out.
    pub conditions: Vec<Condition>,
}

/// A folder.
#[derive(Debug)]
pub struct Folder {
    path: String,
    description: String,
    versioning: Versioning,
    /// The columns from a revision on, the first of which made the folder.
    pub(super) schemas: Vec<(Revision, Vec<ColumnSpec>)>,
    /// The names of channels.
    pub(super) channels: BTreeMap<u32, Option<String>>,
    pub(super) names: BTreeMap<String, u32>,
    /// How many objects and rows were inserted.
    pub(super) inserted: (u64, u64),
    pub(super) contents: Contents,
    /// While it is being sealed: what has changed its data since, with the revisions.
    kept: Option<Vec<(Revision, Touch)>>,
}

impl Folder {
    pub(super) fn new(path: &str, description: &str, versioning: Versioning) -> Self {
        Self {
            path: path.to_owned(),
            description: description.to_owned(),
            versioning,
            schemas: Vec::new(),
            channels: BTreeMap::new(),
            names: BTreeMap::new(),
            inserted: (0, 0),
            contents: Contents::default(),
            kept: None,
        }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether a time may have several objects.
    pub fn versioning(&self) -> Versioning {
        self.versioning
    }

    /// The columns that it has now.
    pub fn columns(&self) -> &[ColumnSpec] {
        self.schemas.last().map_or(&[], |(_, columns)| columns)
    }

    /// The columns that it had at a revision; none before it was made.
    pub fn columns_at(&self, revision: Revision) -> &[ColumnSpec] {
        self.schema(revision).map_or(&[], |(_, columns)| columns)
    }

    /// How many objects were inserted, of how many rows.
    pub fn size(&self) -> (u64, u64) {
        self.inserted
    }

    /// The channels with their names.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = (u32, Option<&str>)> {
        self.channels.iter().map(|(number, name)| (*number, name.as_deref()))
    }

    /// How many segments there are of what the head shows, or a tag of users, by its number.
    pub fn segments(&self, user_tag: Option<Revision>) -> usize {
        let base = self.contents.view(user_tag).map(|view| &view.base);
        base.map_or(0, |base| base.blocks.len() + base.past.len())
    }

    /// How many of them are looked at, for each channel that shows something else now, where what
    /// was shown at a revision is asked.
    pub fn past_segments(&self, user_tag: Option<Revision>, revision: Revision) -> usize {
        let view = self.contents.view(user_tag);
        let is_past = view.is_some_and(|view| revision < view.base.through);
        if is_past { self.segments(user_tag) } else { 0 }
    }

    /// About how many bytes of segments and of memory what is shown over a range may lie in.
    pub fn bytes_over(&self, (since, until): (u64, u64), version: Version) -> u64 {
        let Some(view) = self.contents.view(version.user_tag) else { return 0 };
        let base = &view.base;
        let first = base.place(since).unwrap_or(0);
        let blocks = base.blocks.iter().skip(first).take_while(|block| block.since <= until);
        let past = if version.revision < base.through { &base.past[..] } else { &[] };
        let parts = blocks.map(|block| &block.part).chain(past);
        parts.map(|part| part.bytes).sum::<u64>() + view.recent_bytes()
    }

    /// How many records an object has in the mean, of those about a time that the head has, or a
    /// tag of users, by its number.
    pub fn mean_records(&self, time: u64, user_tag: Option<Revision>) -> u64 {
        let about = self.contents.view(user_tag).map(|view| view.about(time));
        about.map_or(0, |(objects, rows)| rows.div_ceil(objects.max(1)))
    }

    /// The revision that made it.
    pub fn made(&self) -> Revision {
        self.schemas.first().map_or(0, |(revision, _)| *revision)
    }

    /// The columns at a revision, and the revision that they are from; `None` before the folder.
    pub(super) fn schema(&self, revision: Revision) -> Option<&(Revision, Vec<ColumnSpec>)> {
        self.schemas.iter().rfind(|(from, _)| *from <= revision)
    }

    /// How often the columns have changed.
    pub(super) fn schema_changes(&self) -> usize {
        self.schemas.len().saturating_sub(1)
    }

    /// How many columns all of their lists have together.
    pub(super) fn listed_columns(&self) -> usize {
        self.schemas.iter().map(|(_, columns)| columns.len()).sum()
    }

    pub(super) fn set_columns(&mut self, columns: Vec<ColumnSpec>, revision: Revision) {
        let before = self.columns().len();
        for spec in columns.iter().skip(before) {
            self.touch(Touch::Column(spec.kind), revision);
        }
        self.schemas.push((revision, columns));
    }

    /// Changes the data, as it was checked. Returns at which times something else is shown.
    pub(super) fn touch(&mut self, touch: Touch, revision: Revision) -> Changed {
        if let Touch::Insert(batch, _) = &touch {
            for object in &batch.objects {
                self.channels.entry(object.channel).or_default();
            }
            self.inserted.0 += batch.objects.len() as u64;
            self.inserted.1 += u64::from(batch.payload.rows);
        }
        let is_kept = self.kept.is_some();
        let (versioning, channels) = (self.versioning, &self.channels);
        let changed = self.contents.touch(&touch, versioning, channels, revision, is_kept);
        if let Some(kept) = &mut self.kept {
            kept.push((revision, touch));
        }
        changed
    }

    /// From now on what changes the data is kept, until it is sealed.
    pub(super) fn begin_seal(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The data over what has been sealed, which held `columns` columns.
    pub(super) fn rebuilt(
        &self,
        columns: usize,
        bases: impl IntoIterator<Item = (Option<Revision>, Base)>,
    ) -> Contents {
        let kinds = self.columns().iter().take(columns).map(|column| column.kind);
        let mut contents = Contents::new(kinds, bases);
        for (revision, touch) in self.kept.iter().flatten() {
            contents.touch(touch, self.versioning, &self.channels, *revision, false);
        }
        contents
    }

    /// Goes on with other data, or with its own if nothing was sealed; returns what is dropped.
    pub(super) fn end_seal(&mut self, contents: Option<Contents>) -> Option<Contents> {
        let kept = self.kept.take().unwrap_or_default();
        match contents {
            Some(contents) => Some(std::mem::replace(&mut self.contents, contents)),
            None => {
                let forgets = |(_, touch): &&_| matches!(touch, Touch::Forget(_));
                for (revision, touch) in kept.iter().filter(forgets) {
                    let (versioning, channels) = (self.versioning, &self.channels);
                    self.contents.touch(touch, versioning, channels, *revision, false);
                }
                None
            }
        }
    }

    /// The numbers of the selected channels, in order.
    ///
    /// # Errors
    /// When a name isn't there.
    pub fn channels_of(&self, selection: &Selection) -> Result<Vec<u32>, Refusal> {
        let Selection { numbers, names, .. } = selection;
        let numbers = match numbers {
            numbers if !names.is_empty() => {
                let mut ranges =
                    numbers.as_ref().map_or(Vec::new(), |numbers| numbers.ranges().to_vec());
                for name in names {
                    let known = self.names.get(name).copied();
                    let missing = || Refusal::NoChannel(self.path.clone(), name.clone());
                    let number = known.ok_or_else(missing)?;
                    ranges.push((number, number));
                }
                Cow::Owned(Numbers::of_ranges(ranges))
            }
            Some(numbers) => Cow::Borrowed(numbers),
            None => Cow::Owned(Numbers::All),
        };
        Ok(numbers.among(&self.channels, 0).map(|(number, _)| number).collect())
    }

    /// What is shown, to which objects are added, in the columns of a revision.
    pub(super) fn show(&self, revision: Revision) -> Shown<'_> {
        Shown::new(&self.path, self.columns_at(revision), &self.contents)
    }

    /// The pieces with their payload, in the columns of a revision.
    pub(super) fn answer(
        &self,
        pieces: &[(u32, Found<'_>)],
        revision: Revision,
    ) -> Result<Answer, Refusal> {
        self.answer_of(pieces, revision, u32::MAX)
    }

    /// The pieces with the first `most` records of each.
    pub(super) fn answer_of(
        &self,
        pieces: &[(u32, Found<'_>)],
        revision: Revision,
        most: u32,
    ) -> Result<Answer, Refusal> {
        let mut shown = self.show(revision);
        pieces.iter().for_each(|(channel, found)| shown.add(*channel, found, most));
        shown.answer()
    }
}
