//! The tables below a run, in the order in which they can be written: those that merging copies.

/// A table of a run.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Whether its rows have an `id` that others refer to, so that a copy draws a new one.
    pub(crate) has_id: bool,
    /// Its columns that refer to a row of another table: the column, and the table.
    pub(crate) refers: &'static [(&'static str, &'static str)],
    /// Which rows are a run's, ?1.
    pub(crate) of_run: &'static str,
}

const OF_TRIAL: &str = "trial_id IN (SELECT trial.id FROM trial
    JOIN round ON round.id = trial.round_id WHERE round.run_id = ?1)";

const TRIAL: &[(&str, &str)] = &[("trial_id", "trial")];

/// Every one, each after those that it refers to.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "run",
        has_id: true,
        refers: &[("suite_id", "suite"), ("fingerprint_id", "fingerprint")],
        of_run: "id = ?1",
    },
    Table {
        name: "program_figure",
        has_id: false,
        refers: &[("run_id", "run")],
        of_run: "run_id = ?1",
    },
    Table { name: "target", has_id: true, refers: &[("run_id", "run")], of_run: "run_id = ?1" },
    Table { name: "point", has_id: true, refers: &[("run_id", "run")], of_run: "run_id = ?1" },
    Table {
        name: "round",
        has_id: true,
        refers: &[("run_id", "run"), ("point_id", "point")],
        of_run: "run_id = ?1",
    },
    Table {
        name: "trial",
        has_id: true,
        refers: &[("round_id", "round"), ("target_id", "target")],
        of_run: "round_id IN (SELECT id FROM round WHERE run_id = ?1)",
    },
    Table { name: "slice", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "histogram", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "finding", has_id: true, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "stream", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "event", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "slow", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "value", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "counter", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table {
        name: "call",
        has_id: false,
        refers: &[("point_id", "point"), ("target_id", "target")],
        of_run: "point_id IN (SELECT id FROM point WHERE run_id = ?1)",
    },
    Table { name: "floor", has_id: false, refers: &[("run_id", "run")], of_run: "run_id = ?1" },
    Table {
        name: "rung",
        has_id: false,
        refers: &[("target_id", "target")],
        of_run: "target_id IN (SELECT id FROM target WHERE run_id = ?1)",
    },
    Table {
        name: "profile",
        has_id: false,
        refers: &[("point_id", "point"), ("target_id", "target")],
        of_run: "point_id IN (SELECT id FROM point WHERE run_id = ?1)",
    },
    Table { name: "usage", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table { name: "reached", has_id: false, refers: TRIAL, of_run: OF_TRIAL },
    Table {
        name: "requirement",
        has_id: false,
        refers: &[("run_id", "run"), ("point_id", "point")],
        of_run: "run_id = ?1",
    },
    Table {
        name: "comparison",
        has_id: false,
        refers: &[("run_id", "run")],
        of_run: "run_id = ?1",
    },
    Table { name: "search", has_id: false, refers: &[("run_id", "run")], of_run: "run_id = ?1" },
    Table {
        name: "probe",
        has_id: false,
        refers: &[("point_id", "point")],
        of_run: "point_id IN (SELECT id FROM point WHERE run_id = ?1)",
    },
    Table {
        name: "clients",
        has_id: false,
        refers: &[("point_id", "point")],
        of_run: "point_id IN (SELECT id FROM point WHERE run_id = ?1)",
    },
    Table {
        name: "look",
        has_id: false,
        refers: &[("point_id", "point"), ("run_id", "run")],
        of_run: "run_id = ?1",
    },
    Table {
        name: "fact",
        has_id: false,
        refers: &[("target_id", "target")],
        of_run: "target_id IN (SELECT id FROM target WHERE run_id = ?1)",
    },
    Table {
        name: "series",
        has_id: true,
        refers: &[("run_id", "run"), ("target_id", "target")],
        of_run: "run_id = ?1",
    },
    Table {
        name: "chunk",
        has_id: false,
        refers: &[("series_id", "series")],
        of_run: "series_id IN (SELECT id FROM series WHERE run_id = ?1)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Ledger;

    /// A table that is added to the schema and not to the list would be lost in merging.
    #[test]
    fn every_table_is_here_with_everything_that_it_refers_to() {
        let ledger = Ledger::in_memory().unwrap();
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table'
            AND name NOT LIKE 'sqlite_%' AND name NOT IN ('suite', 'fingerprint') ORDER BY name";
        let mut statement = ledger.connection.prepare(names).unwrap();
        let found = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let found: Vec<String> = found.collect::<Result<_, _>>().unwrap();
        let mut listed: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        listed.sort_unstable();
        assert_eq!(found, listed);
        for table in TABLES {
            let sql = "SELECT \"from\", \"table\" FROM pragma_foreign_key_list(?1) ORDER BY 1";
            let mut statement = ledger.connection.prepare(sql).unwrap();
            let keys = statement.query_map([table.name], |row| Ok((row.get(0)?, row.get(1)?)));
            let keys: Vec<(String, String)> = keys.unwrap().collect::<Result<_, _>>().unwrap();
            let mut refers: Vec<(&str, &str)> = table.refers.to_vec();
            refers.sort_unstable();
            let keys: Vec<(&str, &str)> = keys.iter().map(|(a, b)| (&**a, &**b)).collect();
            assert_eq!(keys, refers, "{}", table.name);
        }
    }
}
