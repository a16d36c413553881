//! The system calls of an operation, and the floors of the host that it ran on.

use rusqlite::{Row, params};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::{PointId, RunId, TargetId};

/// One system call of one side at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRow {
    /// The point.
    pub point_id: PointId,
    /// The target.
    pub target_id: TargetId,
    /// Whether the load made it, or else the target.
    pub of_generator: bool,
    /// Its name.
    pub name: String,
    /// Operations answered while it was counted.
    pub operations: u64,
    /// Number of calls.
    pub calls: u64,
    /// How often it failed; "nothing there yet" is a failure to the kernel.
    pub errors: u64,
    /// CPU time in the kernel, as the tracer has it.
    pub system_ns: u64,
}

/// A floor: the cost of a basic operation on the host of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FloorRow {
    /// The run.
    pub run_id: RunId,
    /// What: `system_call`, `round_trip`, `clock_read`.
    pub name: String,
    /// The time.
    pub value_ns: f64,
}

pub(crate) const CALLS: &str = "SELECT call.* FROM call
    JOIN point ON point.id = call.point_id
    WHERE point.run_id = ?1 ORDER BY point_id, target_id, side DESC, calls DESC, name";

pub(crate) const FLOORS: &str = "SELECT * FROM floor WHERE run_id = ?1 ORDER BY name";

pub(crate) fn call_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        point_id: row.get("point_id")?,
        target_id: row.get("target_id")?,
        of_generator: row.get::<_, String>("side")? == "generator",
        name: row.get("name")?,
        operations: row.get("operations")?,
        calls: row.get("calls")?,
        errors: row.get("errors")?,
        system_ns: row.get("system_ns")?,
    })
}

pub(crate) fn floor_row(row: &Row<'_>) -> rusqlite::Result<FloorRow> {
    Ok(FloorRow {
        run_id: row.get("run_id")?,
        name: row.get("name")?,
        value_ns: row.get("value_ns")?,
    })
}

impl Ledger {
    /// Writes the count of a system call.
    pub fn add_call(&mut self, row: &CallRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO call
                (point_id, target_id, side, name, operations, calls, errors, system_ns)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.point_id,
            row.target_id,
            if row.of_generator { "generator" } else { "server" },
            row.name,
            row.operations,
            row.calls,
            row.errors,
            row.system_ns,
        ])?;
        Ok(())
    }

    /// Writes a floor of the run's host.
    pub fn add_floor(&mut self, row: &FloorRow) -> Result<(), LedgerError> {
        let sql = "INSERT OR REPLACE INTO floor (run_id, name, value_ns) VALUES (?1, ?2, ?3)";
        let row = params![row.run_id, row.name, row.value_ns];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
