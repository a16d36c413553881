//! Writes samples to the ledger.

use std::collections::HashMap;

use ledger::{
    Ledger, LedgerError, RunId, SamplePoint, SampleWriter, SeriesId, SeriesRow, TargetId,
};

use super::watch::Watch;

/// Writes what a watch saw as a run's series. Groups are followed under their targets' names.
#[derive(Debug)]
pub struct SeriesWriter {
    run: RunId,
    targets: HashMap<String, TargetId>,
    /// The ledger's id of each of the watch's series.
    series: Vec<SeriesId>,
    writer: SampleWriter,
}

impl SeriesWriter {
    /// For a run with these targets, by name. A group of another name counts as the host's.
    pub fn new(run: RunId, targets: impl IntoIterator<Item = (String, TargetId)>) -> Self {
        let (targets, writer) = (targets.into_iter().collect(), SampleWriter::new());
        Self { run, targets, series: Vec::new(), writer }
    }

    /// Takes what was sampled since the last time and writes it, in the open batch or one of its
    /// own. Once a second keeps a live view fresh; once a round is enough otherwise.
    ///
    /// # Errors
    /// When the ledger can't be written.
    pub fn write(&mut self, ledger: &mut Ledger, watch: &Watch) -> Result<(), LedgerError> {
        // In this order: a sample's series is there before the sample is.
        let samples = watch.take();
        let all = watch.series();
        for series in &all[self.series.len()..] {
            let group = series.group.as_deref();
            let target_id = group.and_then(|name| self.targets.get(name)).copied();
            let name = match group.filter(|_| target_id.is_none()) {
                Some(group) => format!("{group}.{}", series.name),
                None => series.name.clone(),
            };
            self.series.push(ledger.add_series(&SeriesRow {
                run_id: self.run,
                target_id,
                sensor: series.sensor.to_owned(),
                name,
                unit: series.unit.to_owned(),
            })?);
        }
        for sample in samples {
            let point = SamplePoint { at_ns: sample.at, value: sample.value };
            self.writer.push(self.series[sample.series as usize], point);
        }
        self.writer.flush(ledger)
    }
}
