//! The latencies of each group of clients and operation: groups are reported apart, because the
//! mean of a reader's and a writer's latency describes neither.

use ledger::{HistogramKind, HistogramRow, LedgerError};

use crate::figures::Figures;
use crate::latency::{Latency, is_of_a_group};

/// The distributions of one group of clients and one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupFigures {
    /// The clients' name; empty = all.
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

/// The distributions of one group of clients over all of its operations.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientsFigures {
    /// The clients' name.
    pub clients: String,
    /// From the scheduled time to the answer.
    pub latency: Latency,
    /// Send lag; empty unless there is a schedule.
    pub lag: Latency,
}

impl GroupFigures {
    /// Of each group and operation in these whole-trial histograms, in the order of their names.
    ///
    /// Fails when a histogram in the ledger is damaged and has to be decoded.
    pub(crate) fn by_operation(rows: &[&HistogramRow]) -> Result<Vec<GroupFigures>, LedgerError> {
        let rows = || rows.iter().copied().filter(|row| is_of_a_group(row));
        let mut keys: Vec<(&str, &str)> =
            rows().map(|row| (&*row.clients, &*row.operation)).collect();
        keys.sort_unstable();
        keys.dedup();
        let figures = |(clients, operation): (&str, &str)| {
            let of = |kind| {
                let here = rows().filter(|row| {
                    row.kind == kind && (&*row.clients, &*row.operation) == (clients, operation)
                });
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

impl ClientsFigures {
    /// Of each group in these whole-trial histograms, in the order of their names. A group that is
    /// alone is all there is, so it is given `whole` and nothing is decoded.
    ///
    /// Fails when a histogram in the ledger is damaged and has to be decoded.
    pub(crate) fn of(
        rows: &[&HistogramRow],
        whole: &Figures,
    ) -> Result<Vec<ClientsFigures>, LedgerError> {
        let rows = || rows.iter().copied().filter(|row| is_of_a_group(row));
        let mut names: Vec<&str> = rows().map(|row| &*row.clients).collect();
        names.sort_unstable();
        names.dedup();
        let alone = names.len() == 1;
        let figures = |clients: &str| {
            let of = |kind| {
                let here = rows().filter(|row| row.kind == kind && row.clients == clients);
                Latency::merged(&here.collect::<Vec<_>>())
            };
            let (latency, lag) = match alone {
                true => (whole.latency, whole.lag),
                false => (of(HistogramKind::Latency)?, of(HistogramKind::Lag)?),
            };
            Ok(ClientsFigures { clients: clients.to_owned(), latency, lag })
        };
        names.into_iter().map(figures).collect()
    }
}
