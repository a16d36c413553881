//! Tables as Parquet files: what was written is read back, by the library and by DuckDB.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::fixture::whole::whole_run;
use ledger::{Cell, EXPORTS, Export, Ledger, LedgerError, RunId, SamplePoint, SampleWriter};
use ledger::{RunState, SeriesRow};
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// Samples enough for two row groups.
const SAMPLES: u64 = 70_000;

fn write(ledger: &Ledger, run: RunId, export: &Export, folder: &Path) -> std::path::PathBuf {
    let path = folder.join(format!("{}.parquet", export.name));
    ledger.parquet(run, export, File::create(&path).unwrap()).unwrap();
    path
}

fn of_cell(cell: &Cell<'_>, kind: Type) -> String {
    match *cell {
        Cell::Null => "-".to_owned(),
        // A column of whole and other numbers is of numbers.
        Cell::Integer(number) if kind == Type::DOUBLE => format!("{:?}", number as f64),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => format!("{number:?}"),
        Cell::Text(text) => text.to_owned(),
        Cell::Blob(bytes) => format!("{bytes:?}"),
    }
}

fn of_field(field: &Field) -> String {
    match field {
        Field::Null => "-".to_owned(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => format!("{number:?}"),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => format!("{:?}", bytes.data()),
        other => panic!("{other:?} was never written"),
    }
}

#[test]
fn every_table_is_read_back_as_it_was_exported() {
    let mut ledger = Ledger::in_memory().unwrap();
    let run = whole_run(&mut ledger).run;
    let folder = tempfile::tempdir().unwrap();
    for export in EXPORTS {
        let path = write(&ledger, run, export, folder.path());
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr().clone();
        let names: Vec<_> = schema.columns().iter().map(|one| one.name().to_owned()).collect();
        assert_eq!(names, ledger.export_columns(export).unwrap(), "{}", export.name);
        let kinds: Vec<Type> = schema.columns().iter().map(|one| one.physical_type()).collect();
        let mut expected = Vec::new();
        let visit = |cells: &[Cell<'_>]| -> Result<(), LedgerError> {
            let row = cells.iter().zip(&kinds).map(|(cell, kind)| of_cell(cell, *kind));
            expected.push(row.collect::<Vec<_>>());
            Ok(())
        };
        ledger.export(run, export, visit).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            row.get_column_iter().map(|(_, field)| of_field(field)).collect::<Vec<_>>()
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected, "{}", export.name);
        assert!(!expected.is_empty(), "{} says nothing", export.name);
    }
    let none = ledger.parquet(RunId::from(99), &EXPORTS[0], Vec::new());
    assert!(none.unwrap_err().to_string().contains("no run 99"));
}

/// Prints the types of a file's columns, and what its rows sum up to.
const READER: &str = "
import sys, duckdb
samples = duckdb.read_parquet(sys.argv[1])
print(*samples.types)
print(*samples.aggregate('count(*), sum(value), max(at_ns), count(target)').fetchall()[0])
";

#[test]
fn another_program_reads_types_and_values_over_row_groups() {
    let mut ledger = Ledger::in_memory().unwrap();
    let begun = crate::fixture::begin_run(&mut ledger);
    let (sensor, name, unit) = ("load".into(), "one_minute".into(), "count".into());
    let target_id = None;
    let series = SeriesRow { run_id: begun.run, target_id, sensor, name, unit };
    let series = ledger.add_series(&series).unwrap();
    let mut writer = SampleWriter::new();
    for n in 1..=SAMPLES {
        writer.push(series, SamplePoint { at_ns: n * 100_000_000, value: 0.5 });
    }
    writer.flush(&mut ledger).unwrap();
    ledger.finish_run(begun.run, RunState::Finished, "2026-01-02T03:05:05Z", None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = write(&ledger, begun.run, Export::named("samples").unwrap(), folder.path());
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.num_row_groups(), 2);
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/lab/bin/python");
    let has = Command::new(&python).args(["-c", "import duckdb"]).status();
    if !has.is_ok_and(|status| status.success()) {
        testing::skip("duckdb (Python) is not installed (`cargo xtask peers` installs it)");
        return;
    }
    let output = Command::new(python).args(["-c", READER]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).unwrap();
    // A column in which nothing was seen has the type that the schema declares.
    let expected = format!(
        "VARCHAR VARCHAR VARCHAR VARCHAR BIGINT DOUBLE\n{SAMPLES} 35000.0 {} 0\n",
        SAMPLES * 100_000_000
    );
    assert_eq!(read, expected);
}
