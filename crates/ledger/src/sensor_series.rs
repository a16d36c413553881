//! Writing and reading the samples of sensors.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};

use crate::chunk::{CHUNK_NS, SamplePoint, pack, unpack};
use crate::error::LedgerError;
use crate::ids::{RunId, SeriesId};
use crate::open::Ledger;
use crate::rows::{ChunkRow, SeriesRow};

/// Gathers samples into chunks. It holds the last ten seconds of every series, so that a chunk
/// that isn't full yet can be written again, whole, when more has come: readers are never more
/// than one [`SampleWriter::flush`] behind.
#[derive(Debug, Default)]
pub struct SampleWriter {
    open: BTreeMap<SeriesId, Chunk>,
    finished: Vec<(SeriesId, Chunk)>,
}

#[derive(Debug)]
struct Chunk {
    start_ns: u64,
    samples: Vec<SamplePoint>,
    written: bool,
}

impl SampleWriter {
    /// Nothing yet.
    pub fn new() -> SampleWriter {
        SampleWriter::default()
    }

    /// Adds one sample. What isn't a number, or comes before one that is there already, is left
    /// out.
    pub fn push(&mut self, series: SeriesId, sample: SamplePoint) {
        if !sample.value.is_finite() {
            return;
        }
        let start_ns = sample.at_ns / CHUNK_NS * CHUNK_NS;
        let new = || Chunk { start_ns, samples: Vec::new(), written: false };
        let chunk = self.open.entry(series).or_insert_with(new);
        if chunk.samples.last().is_some_and(|last| sample.at_ns <= last.at_ns) {
            return;
        }
        if chunk.start_ns != start_ns {
            self.finished.push((series, std::mem::replace(chunk, new())));
        }
        chunk.samples.push(sample);
        chunk.written = false;
    }

    /// Writes everything that isn't written yet, in the open batch or one of its own.
    ///
    /// Fails when SQLite refuses; it may be called again then.
    pub fn flush(&mut self, ledger: &mut Ledger) -> Result<(), LedgerError> {
        let own_batch = !ledger.in_batch();
        if own_batch {
            ledger.begin_batch()?;
        }
        for (series, chunk) in self.finished.iter().filter(|(_, chunk)| !chunk.written) {
            ledger.put_chunk(*series, chunk)?;
        }
        self.finished.clear();
        for (series, chunk) in self.open.iter_mut().filter(|(_, chunk)| !chunk.written) {
            ledger.put_chunk(*series, chunk)?;
            chunk.written = true;
        }
        if own_batch {
            ledger.commit_batch()?;
        }
        Ok(())
    }
}

impl Ledger {
    /// The id of a series: of the one of this run, target, sensor and name if there is one, else
    /// of a new row.
    pub fn add_series(&mut self, row: &SeriesRow) -> Result<SeriesId, LedgerError> {
        let known = "SELECT id FROM series WHERE run_id = ?1
            AND ifnull(target_id, -1) = ifnull(?2, -1) AND sensor = ?3 AND name = ?4";
        let mut statement = self.connection.prepare_cached(known)?;
        let key = params![row.run_id, row.target_id, row.sensor, row.name];
        if let Some(id) = statement.query_row(key, |found| found.get(0)).optional()? {
            return Ok(id);
        }
        Ok(self.put("INSERT", row, &[])?.into())
    }

    /// Every series of a run: the host's first, then by target.
    pub fn series(&self, run: RunId) -> Result<Vec<(SeriesId, SeriesRow)>, LedgerError> {
        self.all_with_ids("WHERE run_id = ?1 ORDER BY ifnull(target_id, -1), id", [run])
    }

    /// Every sample of a series, in the order of their times.
    ///
    /// Fails besides when a chunk is damaged.
    pub fn samples(&self, series: SeriesId) -> Result<Vec<SamplePoint>, LedgerError> {
        let sql = "SELECT start_ns, count, data FROM chunk WHERE series_id = ?1 ORDER BY start_ns";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([series])?;
        let mut samples = Vec::new();
        while let Some(row) = rows.next()? {
            let (start_ns, count): (u64, usize) = (row.get(0)?, row.get(1)?);
            let data = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
            samples.extend(unpack(start_ns, count, data)?);
        }
        Ok(samples)
    }

    fn put_chunk(&mut self, series: SeriesId, chunk: &Chunk) -> Result<(), LedgerError> {
        let values = || chunk.samples.iter().map(|sample| sample.value);
        let count = chunk.samples.len() as u64;
        let row = ChunkRow {
            series_id: series,
            start_ns: chunk.start_ns,
            count,
            min: values().fold(f64::INFINITY, f64::min),
            mean: values().sum::<f64>() / count as f64,
            max: values().fold(f64::NEG_INFINITY, f64::max),
            data: pack(chunk.start_ns, &chunk.samples),
        };
        self.put("INSERT OR REPLACE", &row, &[]).map(drop)
    }
}
