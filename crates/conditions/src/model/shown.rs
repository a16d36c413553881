//! What a folder shows of its channels, before it is copied: objects, and where their records lie.

use super::change::{ColumnSpec, Object};
use super::contents::{Contents, Runs};
use super::error::{ANSWER, ANSWER_BYTES, Refusal};
use super::table::{Cells, Table};
use super::view::Found;

/// Objects of one folder as they are shown, with their payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The folder.
    pub folder: String,
    /// Its columns at the revision that was asked.
    pub columns: Vec<ColumnSpec>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Their records.
    pub payload: Table,
}

/// Objects of one folder as they are shown, whose payload is read by columns.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The folder.
    pub path: &'a str,
    /// Its columns at the revision that was asked.
    pub columns: &'a [ColumnSpec],
    /// The objects.
    pub objects: Vec<Object>,
    contents: &'a Contents,
    runs: Runs<'a>,
}

impl<'a> Shown<'a> {
    /// Nothing yet of a folder.
    pub(super) fn new(path: &'a str, columns: &'a [ColumnSpec], contents: &'a Contents) -> Self {
        Self { path, columns, objects: Vec::new(), contents, runs: Runs::default() }
    }

    /// Adds a channel's piece with the first `most` of its records.
    pub(super) fn add(&mut self, channel: u32, found: &Found<'a>, most: u32) {
        let rows = self.contents.rows(found);
        let (Found { since, until, .. }, records) = (*found, rows.2.min(most));
        self.objects.push(Object { channel, since, until, records });
        self.runs.add(rows, most);
    }

    /// Adds what another channel shows, as the last one does, with records that follow its.
    pub(super) fn add_alike(&mut self, channel: u32) {
        let Some(last) = self.objects.last().copied() else { return };
        self.runs.extend(last.records as usize);
        self.objects.push(Object { channel, ..last });
    }

    /// How many records the objects have together.
    pub fn rows(&self) -> usize {
        self.runs.rows()
    }

    /// Refuses more than an answer may have, with `before` of other folders; returns the sum.
    pub(super) fn check(&self, before: usize) -> Result<usize, Refusal> {
        let rows = before + self.rows().max(self.objects.len());
        ANSWER.check(rows).map(|()| rows)
    }

    /// Hands on the bytes of segments that its cells lie in, which may have to come from a disk.
    pub fn sealed_bytes(&self, each: &mut dyn FnMut(&[u8])) {
        self.runs.sealed_bytes(each);
    }

    /// Appends the cells of a column, by its place, to cells of its kind. An answer has `before`
    /// bytes already.
    ///
    /// # Errors
    /// When there are too many bytes, or a segment is damaged.
    pub fn read(&self, column: usize, into: &mut Cells, before: usize) -> Result<(), Refusal> {
        self.contents.read(&self.runs, column, into, Some((ANSWER_BYTES, before)))
    }

    /// All of it, copied.
    ///
    /// # Errors
    /// When there are too many rows or bytes, or a segment is damaged.
    pub fn answer(self) -> Result<Answer, Refusal> {
        self.check(0)?;
        let kinds = self.columns.iter().map(|column| column.kind);
        let payload = self.contents.gather(&self.runs, kinds, Some(ANSWER_BYTES))?;
        let (folder, columns) = (self.path.to_owned(), self.columns.to_vec());
        Ok(Answer { folder, columns, objects: self.objects, payload })
    }
}
