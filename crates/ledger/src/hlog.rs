//! A run's latencies as an HdrHistogram interval log, which tools of other languages read.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::LedgerError;
use crate::histogram::decode;
use crate::ids::RunId;
use crate::open::Ledger;

const SECONDS: &str = "SELECT target.name AS target, clients, operation, second, data
    FROM histogram
    JOIN trial ON trial.id = histogram.trial_id
    JOIN target ON target.id = trial.target_id
    WHERE target.run_id = ?1 AND kind = 'latency' AND second IS NOT NULL
    ORDER BY second, trial.id, clients, operation";

impl Ledger {
    /// Every second of a run's latencies as an HdrHistogram log, in nanoseconds: a line per second,
    /// group of clients and operation, with the tag `TARGET.CLIENTS.OPERATION`. `base`
    /// is when the run started; lines count from there.
    ///
    /// Fails besides when a histogram is damaged.
    pub fn hlog(&self, run: RunId, base: SystemTime) -> Result<Vec<u8>, LedgerError> {
        let mut log = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let failed = |error: &dyn std::fmt::Debug| LedgerError::Histogram(format!("{error:?}"));
        let mut writer = IntervalLogWriterBuilder::new()
            .add_comment("latencies in nanoseconds; tags are TARGET.CLIENTS.OPERATION")
            .with_base_time(base)
            .begin_log_with(&mut log, &mut serializer)
            .map_err(|error| failed(&error))?;
        let mut statement = self.connection.prepare_cached(SECONDS)?;
        let mut rows = statement.query([run])?;
        while let Some(row) = rows.next()? {
            let histogram = decode(row.get_ref("data")?.as_blob().map_err(rusqlite::Error::from)?)?;
            let (target, clients): (String, String) = (row.get("target")?, row.get("clients")?);
            let (operation, second): (String, u32) = (row.get("operation")?, row.get("second")?);
            let tag = tag_of(&format!("{target}.{clients}.{operation}"));
            let (start, length) = (Duration::from_secs(u64::from(second)), Duration::from_secs(1));
            writer
                .write_histogram(&histogram, start, length, Tag::new(&tag))
                .map_err(|error| failed(&error))?;
        }
        Ok(log)
    }
}

/// A tag may hold neither commas nor white space.
fn tag_of(name: &str) -> String {
    name.replace(|c: char| c == ',' || c.is_whitespace() || c.is_control(), "_")
}
