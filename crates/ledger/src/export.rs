//! A run's figures as tables, for programs that would rather not speak SQL.

use rusqlite::types::ValueRef;

use crate::chunk::unpack;
use crate::error::LedgerError;
use crate::ids::RunId;
use crate::open::Ledger;

/// One table that can be exported.
#[derive(Debug)]
pub struct Export {
    /// Its name.
    pub name: &'static str,
    /// The type of a row.
    pub doc: &'static str,
    /// Its rows of run ?1.
    sql: &'static str,
}

/// The table whose rows are chunks, which hold many samples each.
const SAMPLES: &str = "samples";

/// The rows of run ?1 in a table below trials, each with its target and round.
macro_rules! of_trials {
    ($name:literal, $doc:literal, $table:literal by $order:literal) => {
        of_trials!($name, $doc, concat!($table, ".*"), $table by $order)
    };
    ($name:literal, $doc:literal, $columns:expr, $table:literal by $order:literal) => {
        Export {
            name: $name,
            doc: $doc,
            sql: concat!(
                "SELECT target.name AS target, round.ordinal AS round, ",
                $columns,
                " FROM ",
                $table,
                " JOIN trial ON trial.id = ",
                $table,
                ".trial_id JOIN target ON target.id = trial.target_id
                 JOIN round ON round.id = trial.round_id WHERE round.run_id = ?1 ",
                $order
            ),
        }
    };
}

/// Every table that can be exported. Their columns are those of the ledger.
#[rustfmt::skip] // A table below trials has two lines.
pub static EXPORTS: &[Export] = &[
    Export {
        name: "trials",
        doc: "a trial, with the figures that reports show",
        sql: "SELECT * FROM trials WHERE run_id = ?1 ORDER BY point_id, round, trial_id",
    },
    Export {
        name: "latency",
        doc: "a distribution of a whole trial, by clients, operation and kind",
        sql: "SELECT * FROM latency WHERE run_id = ?1
            ORDER BY trial_id, clients, operation, kind",
    },
    of_trials!("seconds", "the same of each second",
        "trial_id, clients, operation, kind, second, count, min_ns, mean_ns, p50_ns, p90_ns, p99_ns,
         p999_ns, max_ns",
        "histogram"
        by "AND second IS NOT NULL ORDER BY trial_id, second, clients, operation, kind"),
    of_trials!("streams", "what the streams of a trial's group of clients have brought",
        "trial_id, clients, streams, updates, missed, merged, least_updates, stream.fairness,
         stream.staleness_p50_ns, stream.staleness_p99_ns, stream.staleness_max_ns",
        "stream" by "ORDER BY trial_id, clients"),
    of_trials!("stretches", "one rate of several, a tenth of a trace, or the whole of a schedule",
        "trial_id, clients, stretch.ordinal, stretch.name, length_ns, stretch.offered, answered,
         waited, stretch.overloaded, stretch.wrong, stretch.refused, stretch.missing,
         latency_p50_ns, latency_p99_ns",
        "stretch" by "ORDER BY trial_id, clients, stretch.ordinal"),
    of_trials!("slices", "a slice of a trial",
        "slice" by "ORDER BY trial_id, slice.ordinal"),
    of_trials!("events", "an event of the suite that happened in a trial",
        "event" by "ORDER BY trial_id, event.ordinal"),
    Export {
        name: "sensors",
        doc: "ten seconds of what a sensor saw",
        sql: "SELECT * FROM sensors WHERE run_id = ?1 ORDER BY series_id, start_ns",
    },
    Export {
        name: SAMPLES,
        doc: "one value that a sensor saw",
        sql: "SELECT target.name AS target, series.sensor AS sensor, series.name AS name,
                series.unit AS unit, chunk.start_ns AS at_ns, chunk.count AS value, chunk.data
            FROM series
            JOIN chunk ON chunk.series_id = series.id
            LEFT JOIN target ON target.id = series.target_id
            WHERE series.run_id = ?1 ORDER BY series.id, chunk.start_ns",
    },
    of_trials!("slow", "one of the slowest requests of a trial",
        "slow" by "ORDER BY trial_id, latency_ns DESC, at_ns"),
    of_trials!("values", "a figure that a call measured itself",
        "value" by "ORDER BY trial_id, value.ordinal"),
    of_trials!("counters", "what a service itself counted in a trial",
        "counter" by "ORDER BY trial_id, counter.name"),
    Export {
        name: "limits",
        doc: "a limit that a trial reached, or that it reached none",
        sql: "SELECT * FROM limits WHERE run_id = ?1 ORDER BY trial_id, rank",
    },
    of_trials!("statements", "a statement that a target executed in a trial",
        "statement" by "ORDER BY trial_id, rank"),
    of_trials!("advice", "what would help a target, as its dialect says",
        "advice" by "ORDER BY trial_id, rank"),
    of_trials!("usage", "a figure of what was used in a trial",
        "usage" by "ORDER BY trial_id, name"),
    of_trials!("findings", "a wrong answer, its bytes in hex",
        "finding" by "ORDER BY finding.id"),
    Export {
        name: "requirements",
        doc: "what became of a requirement at a point",
        sql: "SELECT point.label AS point, requirement.*
            FROM requirement JOIN point ON point.id = requirement.point_id
            WHERE requirement.run_id = ?1 ORDER BY point.ordinal, requirement.rowid",
    },
    Export {
        name: "carried",
        doc: "whether a target carries a load that the suite names",
        sql: "SELECT point.label AS point, target.name AS target, carried.*
            FROM carried JOIN point ON point.id = carried.point_id
            JOIN target ON target.id = carried.target_id
            WHERE point.run_id = ?1 ORDER BY point.ordinal, carried.name, target.ordinal",
    },
    Export {
        name: "verdicts",
        doc: "one target against another by one metric, judged when the run ended",
        sql: "SELECT point.label AS point, a.name AS a, b.name AS b, verdict.*
            FROM verdict JOIN point ON point.id = verdict.point_id
            JOIN target AS a ON a.id = verdict.a_id JOIN target AS b ON b.id = verdict.b_id
            WHERE verdict.run_id = ?1 ORDER BY verdict.ordinal",
    },
    Export {
        name: "cool_test",
        doc: "a second of a trial and its clients, under the names of an older rig",
        sql: "SELECT * FROM cool_test WHERE run_id = ?1 ORDER BY trial_id, client, report",
    },
];

/// One value of an exported row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Unseen.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any number.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl Export {
    /// The table of this name.
    pub fn named(name: &str) -> Option<&'static Export> {
        EXPORTS.iter().find(|export| export.name == name)
    }
}

impl Ledger {
    /// The names of a table's columns.
    pub fn export_columns(&self, export: &Export) -> Result<Vec<String>, LedgerError> {
        let statement = self.connection.prepare(export.sql)?;
        let names = statement.column_names();
        let shown = names.len() - usize::from(export.name == SAMPLES);
        Ok(names.take(shown).map(str::to_owned).collect())
    }

    /// The types that the schema declares for a table's columns; `None` is an expression.
    #[cfg(feature = "parquet")]
    pub(crate) fn export_types(&self, export: &Export) -> Result<Vec<Option<String>>, LedgerError> {
        let statement = self.connection.prepare(export.sql)?;
        let shown = statement.column_count() - usize::from(export.name == SAMPLES);
        let columns = statement.columns();
        let types =
            columns.take(shown).map(|column| column.decl_type().map(str::to_ascii_uppercase));
        Ok(types.collect())
    }

    /// Calls back for every row of a table that is of this run, one at a time, so that a run of any
    /// length takes no more memory than a row.
    ///
    /// Fails when there is no such run, when a row is damaged, or when `visit` does.
    pub fn export<E: From<LedgerError>>(
        &self,
        run: RunId,
        export: &Export,
        mut visit: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = |error: rusqlite::Error| E::from(LedgerError::from(error));
        let exists = "SELECT count(*) FROM run WHERE id = ?1";
        let runs: u64 = self.connection.query_row(exists, [run], |row| row.get(0)).map_err(sql)?;
        if runs == 0 {
            return Err(LedgerError::NoSuchRun(run).into());
        }
        let mut statement = self.connection.prepare(export.sql).map_err(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([run]).map_err(sql)?;
        while let Some(row) = rows.next().map_err(sql)? {
            let mut cells = Vec::with_capacity(columns);
            for column in 0..columns {
                cells.push(cell(row.get_ref(column).map_err(sql)?).map_err(sql)?);
            }
            if export.name == SAMPLES {
                unpacked(&mut cells, &mut visit)?;
            } else {
                visit(&cells)?;
            }
        }
        Ok(())
    }
}

/// Calls back for the samples of a chunk, whose row ends with the start, the count and the data.
fn unpacked<E: From<LedgerError>>(
    cells: &mut Vec<Cell<'_>>,
    visit: &mut impl FnMut(&[Cell<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let (Some(Cell::Blob(data)), [.., Cell::Integer(start_ns), Cell::Integer(count)]) =
        (cells.pop(), &cells[..])
    else {
        return Err(LedgerError::Chunk { start_ns: 0 }.into());
    };
    let start_ns = start_ns.cast_unsigned();
    let count = usize::try_from(*count).map_err(|_| LedgerError::Chunk { start_ns })?;
    let (at, value) = (cells.len() - 2, cells.len() - 1);
    for sample in unpack(start_ns, count, data)? {
        cells[at] = Cell::Integer(sample.at_ns.cast_signed());
        cells[value] = Cell::Real(sample.value);
        visit(cells)?;
    }
    Ok(())
}

fn cell(value: ValueRef<'_>) -> rusqlite::Result<Cell<'_>> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(_) => Cell::Text(value.as_str()?),
        ValueRef::Blob(bytes) => Cell::Blob(bytes),
    })
}
