//! The latencies of each group of clients and operation: groups are reported apart, because the
//! mean of a reader's and a writer's latency describes neither.

use std::collections::BTreeSet;

use ledger::{HistogramKind, HistogramRow, LedgerError};

use crate::figures::Figures;
use crate::latency::{Latency, is_of_a_group};

/// The distributions of one group of clients and one operation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupFigures {
    /// The clients' name.
    pub clients: String,
    /// The operation; empty = all.
    pub operation: String,
    /// From the scheduled time to the answer.
    pub latency: Latency,
    /// From the sending to the answer; empty unless there is a schedule.
    pub service: Latency,
    /// Send lag; empty unless there is a schedule.
    pub lag: Latency,
}

impl GroupFigures {
    /// Of each group and operation in these whole-trial histograms, in the order of their names.
    ///
    /// Fails when a histogram in the ledger is damaged and has to be decoded.
    pub(crate) fn by_operation(rows: &[&HistogramRow]) -> Result<Vec<GroupFigures>, LedgerError> {
        GroupFigures::by(rows, |row| (&row.clients, &row.operation))
    }

    /// The same over all operations. A group that is alone is all there is, so it is given `whole`
    /// and nothing is decoded.
    pub(crate) fn by_clients(
        rows: &[&HistogramRow],
        whole: &Figures,
    ) -> Result<Vec<GroupFigures>, LedgerError> {
        let of_groups = rows.iter().filter(|row| is_of_a_group(row));
        let names: BTreeSet<&String> = of_groups.map(|row| &row.clients).collect();
        match names.first() {
            Some(name) if names.len() == 1 => {
                let (clients, latency, lag) = ((*name).clone(), whole.latency, whole.lag);
                Ok(vec![GroupFigures { clients, latency, lag, ..GroupFigures::default() }])
            }
            _ => GroupFigures::by(rows, |row| (&row.clients, "")),
        }
    }

    /// Of all rows with one key: the names of clients and operation.
    fn by(
        rows: &[&HistogramRow],
        key: fn(&HistogramRow) -> (&str, &str),
    ) -> Result<Vec<GroupFigures>, LedgerError> {
        let rows = || rows.iter().copied().filter(|row| is_of_a_group(row));
        let keys: BTreeSet<(&str, &str)> = rows().map(key).collect();
        let figures = |names: (&str, &str)| {
            let of = |kind| {
                let here = rows().filter(|row| row.kind == kind && key(row) == names);
                Latency::merged(&here.collect::<Vec<_>>())
            };
            Ok(GroupFigures {
                clients: names.0.to_owned(),
                operation: names.1.to_owned(),
                latency: of(HistogramKind::Latency)?,
                service: of(HistogramKind::Service)?,
                lag: of(HistogramKind::Lag)?,
            })
        };
        keys.into_iter().map(figures).collect()
    }
}
