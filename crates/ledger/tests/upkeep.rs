//! Merging ledgers, deleting runs, exporting tables, and the view for an older rig's queries.

use std::path::{Path, PathBuf};

use crate::fixture::begin_run;
use crate::fixture::whole::whole_run;
use ledger::{
    Cell, EXPORTS, Export, Ledger, LedgerError, Merged, RunId, RunView, SamplePoint, SampleWriter,
    SeriesRow,
};

fn on_disk(folder: &Path, name: &str) -> (PathBuf, Ledger) {
    let path = folder.join(name);
    let ledger = Ledger::open(&path).unwrap();
    (path, ledger)
}

/// Every exported table of a run, without the columns that hold ids.
fn tables(ledger: &Ledger, run: RunId) -> Vec<String> {
    let mut all = Vec::new();
    for export in EXPORTS {
        let columns = ledger.export_columns(export).unwrap();
        let keep: Vec<bool> = columns.iter().map(|name| !name.ends_with("id")).collect();
        ledger
            .export::<LedgerError>(run, export, |cells| {
                assert_eq!(cells.len(), columns.len());
                let cells = cells.iter().zip(&keep).filter(|(_, keep)| **keep);
                let cells: Vec<String> = cells.map(|(cell, _)| format!("{cell:?}")).collect();
                all.push(format!("{}: {}", export.name, cells.join(" ")));
                Ok(())
            })
            .unwrap();
    }
    all
}

/// What has no ids in it.
fn shared(view: &RunView) -> String {
    let RunView { uid, suite, fingerprint, run, .. } = view;
    format!("{uid} {suite:?} {fingerprint:?} {:?} {:?}", run.settings, run.state)
}

#[test]
fn a_merged_run_is_the_same_with_new_ids_and_is_not_merged_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut here) = on_disk(folder.path(), "here.sqlite");
    let (_, mut there) = on_disk(folder.path(), "there.sqlite");
    whole_run(&mut here);
    let first = whole_run(&mut there);
    let second = whole_run(&mut there);
    let running = begin_run(&mut there);

    let merged = here.merge(&there).unwrap();
    let new: Vec<RunId> = merged.taken.iter().map(|(_, new)| *new).collect();
    assert_eq!(merged.taken, [(first.run, new[0]), (second.run, new[1])]);
    assert_eq!((new[0].get(), &merged.running), (2, &vec![running.run]));
    for (old, new) in &merged.taken {
        assert_eq!(tables(&here, *new), tables(&there, *old));
        let (a, b) = (here.run_view(*new).unwrap(), there.run_view(*old).unwrap());
        assert_eq!(shared(&a), shared(&b));
        assert_eq!(here.series(*new).unwrap().len(), 3);
    }
    // Every table holds something, or the comparison says nothing of it.
    for export in EXPORTS {
        let start = format!("{}: ", export.name);
        assert!(tables(&here, new[0]).iter().any(|row| row.starts_with(&start)), "{start}");
    }

    let again = here.merge(&there).unwrap();
    let known = vec![first.run, second.run];
    assert_eq!(again, Merged { taken: vec![], known, running: vec![running.run] });
    assert_eq!(here.runs().unwrap().len(), 3);
}

#[test]
fn a_run_whose_targets_are_lost_is_named_with_its_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut ledger) = on_disk(folder.path(), "damaged.sqlite");
    let run = begin_run(&mut ledger).run;
    let other = rusqlite::Connection::open(&path).unwrap();
    let damage = "PRAGMA foreign_keys = 0; UPDATE target SET run_id = 9223372036854775807";
    other.execute_batch(damage).unwrap();
    let error = ledger.run_view(run).unwrap_err().to_string();
    assert!(error.contains("damaged.sqlite is damaged: run 1 has no targets in it"), "{error}");
}

#[test]
fn a_merge_that_fails_halfway_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut here) = on_disk(folder.path(), "here.sqlite");
    let (_, mut there) = on_disk(folder.path(), "there.sqlite");
    whole_run(&mut there);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON slow
        BEGIN SELECT raise(ABORT, 'no'); END";
    by_hand.execute_batch(refuse).unwrap();
    assert!(here.merge(&there).is_err());
    assert!(!here.in_batch() && here.runs().unwrap().is_empty());
    by_hand.execute_batch("DROP TRIGGER refuse").unwrap();
    assert_eq!(here.merge(&there).unwrap().taken.len(), 1);
}

#[test]
fn deleted_runs_leave_nothing_and_give_their_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut ledger) = on_disk(folder.path(), "ledger.sqlite");
    let gone = whole_run(&mut ledger);
    let stays = whole_run(&mut ledger);
    let mut writer = SampleWriter::new();
    let name = "noise".to_owned();
    let series = SeriesRow {
        run_id: gone.run,
        target_id: None,
        sensor: name.clone(),
        name,
        unit: "count".into(),
    };
    let series = ledger.add_series(&series).unwrap();
    for n in 1..100_000_u64 {
        let value = (n.wrapping_mul(2_654_435_761) % 16_384) as f64;
        writer.push(series, SamplePoint { at_ns: n * 100_000_000, value });
    }
    writer.flush(&mut ledger).unwrap();
    let before = tables(&ledger, stays.run);
    let freed = ledger.delete_runs(&[gone.run]).unwrap();
    assert!(freed > 100_000, "{freed}");
    assert!(std::fs::metadata(&path).unwrap().len() < 500_000);
    assert_eq!(tables(&ledger, stays.run), before);
    assert!(matches!(ledger.run_view(gone.run), Err(LedgerError::NoSuchRun(_))));

    ledger.delete_runs(&[stays.run]).unwrap();
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    let mut names = by_hand
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for name in names.map(Result::unwrap) {
        let sql = format!("SELECT count(*) FROM {name}");
        let rows: u64 = by_hand.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{name}");
    }
    assert!(begin_run(&mut ledger).run > stays.run, "a run's id is never given twice");
}

#[test]
fn samples_are_exported_unpacked() {
    let mut ledger = Ledger::in_memory().unwrap();
    let begun = whole_run(&mut ledger);
    let export = Export::named("samples").unwrap();
    let columns = ledger.export_columns(export).unwrap();
    assert_eq!(columns, ["target", "sensor", "name", "unit", "at_ns", "value"]);
    let mut last = Vec::new();
    let visit = |cells: &[Cell<'_>]| -> Result<(), LedgerError> {
        last = cells[3..].iter().map(|cell| format!("{cell:?}")).collect();
        Ok(())
    };
    ledger.export(begun.run, export, visit).unwrap();
    assert_eq!(last, ["Text(\"count\")", "Integer(10500000000)", "Real(0.5)"]);
    let none = ledger.export::<LedgerError>(RunId::from(99), export, |_| Ok(()));
    assert!(matches!(none, Err(LedgerError::NoSuchRun(_))));
}

/// The twenty columns, in the order of that rig's CREATE TABLE.
const COOL_TEST: [&str; 20] = [
    "time",
    "testvalue",
    "runnum",
    "isdefault",
    "duration",
    "expectedwor",
    "numpersecwor",
    "expectedmbpminwor",
    "clientscpuperc",
    "passed",
    "testname",
    "client",
    "report",
    "elapsed",
    "actualwor",
    "percwor",
    "mbpminwor",
    "load5",
    "clientmemperc",
    "hostname",
];

#[test]
fn an_older_rigs_table_is_filled_as_far_as_the_ledger_knows() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut ledger) = on_disk(folder.path(), "ledger.sqlite");
    whole_run(&mut ledger);
    let export = Export::named("cool_test").unwrap();
    assert_eq!(ledger.export_columns(export).unwrap()[..20], COOL_TEST);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    by_hand
        .execute_batch(
            r#"UPDATE fingerprint SET json = '{"memory": "102400 kB", "hostname": "lx7"}';
               UPDATE point SET keys = '{"clients.connections": 4, "workload.operation": "get"}';"#,
        )
        .unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = by_hand.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let cells = (0..columns).map(|column| {
                let value: rusqlite::types::Value = row.get(column)?;
                Ok(match value {
                    rusqlite::types::Value::Text(text) => text,
                    rusqlite::types::Value::Null => "NULL".to_owned(),
                    rusqlite::types::Value::Real(number) => format!("{number:.3}"),
                    other => format!("{other:?}"),
                })
            });
            Ok(cells.collect::<rusqlite::Result<Vec<String>>>()?.join(" "))
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    let first = "SELECT time, testname, testvalue, runnum, isdefault, duration, passed
        FROM cool_test ORDER BY report";
    let expected = "2026-01-02T03:04:15Z clients.connections 4 Integer(1) Integer(1) 2.000 yes";
    assert_eq!(rows(first)[0], expected);
    let figures = "SELECT client, report, elapsed, expectedwor, numpersecwor, actualwor, percwor
        FROM cool_test ORDER BY report";
    assert_eq!(
        rows(figures),
        [1, 2].map(|report| format!(
            "Integer(1) Integer({report}) 0.020 1000.000 1000.000 Integer(950) 95.000"
        ))
    );
    let host = "SELECT clientscpuperc, load5, clientmemperc, hostname, mbpminwor FROM cool_test";
    assert_eq!(rows(host)[1], "50.000 1.250 1.000 lx7 NULL");
    // 5 MiB in the two seconds of 1,900 operations, of 2,000 that were due.
    by_hand.execute_batch("UPDATE trial SET received_bytes = 5 * 1048576").unwrap();
    let bytes = "SELECT mbpminwor, expectedmbpminwor, operations, offered FROM cool_test
        JOIN trial ON trial.id = trial_id";
    assert_eq!(rows(bytes), ["150.000 157.895 Integer(1900) Integer(2000)"; 2]);
    let averages = "SELECT testvalue, reports, avg_elapsed, avg_servertime, min_elapsed, actualwor
        FROM cool_test_averages";
    assert_eq!(rows(averages), ["4 Integer(2) 0.020 0.005 0.020 Integer(1900)"]);
    // Half of each slice went by until the last were answered.
    by_hand.execute_batch("UPDATE trial SET schedule_ns = 1000000000").unwrap();
    let overloaded = "SELECT expectedwor, numpersecwor, percwor FROM cool_test";
    assert_eq!(rows(overloaded), ["1000.000 2000.000 95.000"; 2]);
}
