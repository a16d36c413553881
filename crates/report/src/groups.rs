//! What each group of clients saw of each operation: groups are reported apart, because the mean
//! of a reader's and a writer's latency is nobody's.

use ledger::{HistogramKind, HistogramRow, LedgerError};

use crate::figures::Latency;

/// The distributions of one group of clients and one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupFigures {
    /// The clients' name; empty = all.
    pub clients: String,
    /// The operation; empty = all.
    pub operation: String,
    /// From the scheduled time to the answer.
    pub latency: Latency,
    /// From the sending to the answer; of no values unless a schedule asked.
    pub service: Latency,
    /// Send lag; of no values unless a schedule asked.
    pub lag: Latency,
}

impl GroupFigures {
    /// Of each group and operation in these whole-trial histograms, in the order of their names.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn by_operation(rows: &[&HistogramRow]) -> Result<Vec<GroupFigures>, LedgerError> {
        GroupFigures::by(rows, |row| (&row.clients, &row.operation))
    }

    /// Of each group, over all of its operations.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn by_clients(rows: &[&HistogramRow]) -> Result<Vec<GroupFigures>, LedgerError> {
        GroupFigures::by(rows, |row| (&row.clients, ""))
    }

    fn by<'a>(
        rows: &[&'a HistogramRow],
        key: impl Fn(&'a HistogramRow) -> (&'a str, &'a str),
    ) -> Result<Vec<GroupFigures>, LedgerError> {
        let rows = || rows.iter().copied().filter(|row| is_of_a_group(row));
        let mut keys: Vec<(&str, &str)> = rows().map(&key).collect();
        keys.sort_unstable();
        keys.dedup();
        let figures = |(clients, operation): (&'a str, &'a str)| {
            let of = |kind| {
                let here =
                    rows().filter(|row| row.kind == kind && key(row) == (clients, operation));
                Latency::merged(&here.collect::<Vec<_>>())
            };
            Ok(GroupFigures {
                clients: clients.to_owned(),
                operation: operation.to_owned(),
                latency: of(HistogramKind::Latency)?,
                service: of(HistogramKind::Service)?,
                lag: of(HistogramKind::Lag)?,
            })
        };
        keys.into_iter().map(figures).collect()
    }
}

/// Not a sum over groups or operations, of which the parts are stored too.
fn is_of_a_group(row: &HistogramRow) -> bool {
    !row.clients.is_empty() && !row.operation.is_empty() && row.second.is_none()
}

/// The histograms of all send lags of one trial: the one over all groups and operations where it
/// is stored, else each of theirs.
pub(crate) fn lags<'a>(rows: &[&'a HistogramRow]) -> Vec<&'a HistogramRow> {
    let lags = || rows.iter().copied().filter(|row| row.kind == HistogramKind::Lag);
    match lags().find(|row| row.clients.is_empty() && row.operation.is_empty()) {
        Some(whole) => vec![whole],
        None => lags().filter(|row| is_of_a_group(row)).collect(),
    }
}
