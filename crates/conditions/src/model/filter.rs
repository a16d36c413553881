//! Which objects and records of a folder meet conditions.

use super::condition::{Condition, meets};
use super::error::Refusal;
use super::folder::Folder;
use super::piece::Revision;
use super::shown::Answer;
use super::table::Table;
use super::view::Found;

/// Pieces that are looked at together.
const CHUNK: usize = 4_096;

impl Folder {
    /// The pieces whose objects have a record that meets all conditions.
    pub(super) fn matching<'a>(
        &'a self,
        pieces: Vec<(u32, Found<'a>)>,
        conditions: &[Condition],
        revision: Revision,
    ) -> Result<Vec<(u32, Found<'a>)>, Refusal> {
        if conditions.is_empty() {
            return Ok(pieces);
        }
        let mut kept = Vec::new();
        for chunk in pieces.chunks(CHUNK) {
            self.match_chunk(chunk, conditions, revision, &mut kept)?;
        }
        Ok(kept)
    }

    fn match_chunk<'a>(
        &'a self,
        pieces: &[(u32, Found<'a>)],
        conditions: &[Condition],
        revision: Revision,
        kept: &mut Vec<(u32, Found<'a>)>,
    ) -> Result<(), Refusal> {
        let answer = match self.answer(pieces, revision) {
            Ok(answer) => answer,
            // Too much for one look.
            Err(Refusal::TooMany(..)) if pieces.len() > 1 => {
                let (first, second) = pieces.split_at(pieces.len() / 2);
                self.match_chunk(first, conditions, revision, kept)?;
                return self.match_chunk(second, conditions, revision, kept);
            }
            Err(refusal) => return Err(refusal),
        };
        let mut row = 0;
        for (piece, object) in pieces.iter().zip(&answer.objects) {
            let mut rows = row..row + object.records as usize;
            row = rows.end;
            if rows.any(|row| meets(&answer.payload, row, conditions)) {
                kept.push(*piece);
            }
        }
        Ok(())
    }
}

impl Answer {
    /// Keeps the records that meet all conditions.
    pub(super) fn keep(&mut self, conditions: &[Condition]) {
        if conditions.is_empty() {
            return;
        }
        let mut payload = Table::new(self.payload.columns.iter().map(super::table::Cells::kind));
        let mut row = 0;
        for object in &mut self.objects {
            let rows = row..row + object.records as usize;
            row = rows.end;
            object.records = 0;
            for row in rows.filter(|row| meets(&self.payload, *row, conditions)) {
                for (into, cells) in payload.columns.iter_mut().zip(&self.payload.columns) {
                    into.append(cells, row..row + 1);
                }
                object.records += 1;
            }
            payload.rows += object.records;
        }
        self.payload = payload;
    }
}
