//! Files that are written and read again, by others, too, and those that are none.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::super::input::BadInput;
use super::form::schema;
use super::read::{Begun, objects};
use super::write::{Cells, write, write_group};
use crate::model::{ColumnSpec, KINDS, Kind, MAX_TIME, Object, Value};
use crate::protocol::{Bulk, FLAT_BEGIN, encode_insert};

/// What pyarrow reads, and writes again in its own way.
const SCRIPT: &str = "
import sys, pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1])
print([str(kind) for kind in table.schema.types])
print(table.to_pylist()[1])
parquet.write_table(table, sys.argv[2])
";

fn bulk() -> Bulk {
    let column = |(kind, name): (Kind, &str)| ColumnSpec { name: name.to_owned(), kind };
    let columns: Vec<_> = KINDS.map(column).to_vec();
    let mut bulk = Bulk::new("/det/x", None, false, columns);
    let objects = [(3, 5, 9, 2), (4, 0, MAX_TIME, 0), (u32::MAX, 7, MAX_TIME, 1)];
    for (channel, since, until, records) in objects {
        bulk.batch.objects.push(Object { channel, since, until, records });
    }
    for row in 0..3 {
        for (cells, (kind, _)) in bulk.batch.payload.columns.iter_mut().zip(KINDS) {
            let bits = 8 * kind.width_bytes().unwrap_or(8) as u32;
            let value = match kind {
                _ if row == 2 => Value::Null,
                Kind::Bool => Value::Bool(row == 0),
                Kind::Int16 | Kind::Int32 | Kind::Int64 => Value::Integer(-(1 << (bits - 1))),
                Kind::Float => Value::Float(0.1),
                Kind::Double => Value::Double(f64::MIN_POSITIVE),
                Kind::String => Value::Text(if row == 0 { "" } else { "é" }.to_owned()),
                Kind::Blob => Value::Bytes(vec![0, 255]),
                _ => Value::Integer((1 << bits) - 1),
            };
            cells.push(&value).expect("of its kind");
        }
        bulk.batch.payload.rows += 1;
    }
    bulk
}

fn read_again(path: &Path, columns: &[ColumnSpec]) -> Vec<Begun> {
    let mut found = Vec::new();
    let each = &mut |begun, _| {
        found.push(begun);
        Ok(())
    };
    objects(path, columns, false, each).expect("read");
    found
}

#[test]
fn what_is_written_is_read_again_and_by_a_reader_that_is_not_ours() {
    let bulk = bulk();
    let folder = tempfile::tempdir().expect("a folder");
    let (path, theirs) = (folder.path().join("x.parquet"), folder.path().join("y.parquet"));
    let file = File::create(&path).expect("a file");
    write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
    let payload = &bulk.batch.payload;
    let mut rows = (0..3).map(|row| payload.row(row).collect::<Vec<_>>());
    let expected: Vec<Begun> = bulk
        .batch
        .objects
        .iter()
        .map(|object| (*object, rows.by_ref().take(object.records as usize).collect()))
        .collect();
    assert_eq!(read_again(&path, &bulk.columns), expected);

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/venv/conditions/bin/python");
    if !python.exists() {
        testing::skip("pyarrow is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let mut command = Command::new(python);
    let out = command.args(["-c", SCRIPT]).arg(&path).arg(&theirs).output().expect("Python");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let kinds = "['uint32', 'int64', 'int64', 'uint32', 'bool', 'uint8', 'int16', 'uint16', \
                 'int32', 'uint32', 'int64', 'uint64', 'float', 'double', 'string', 'binary']";
    assert!(said.starts_with(kinds), "{said}");
    for part in [
        "'channel': 3, 'since': 5, 'until': 9, 'record': 1, 'bool': False, 'uint8': 255",
        "'uint64': 18446744073709551615",
        "'double': 2.2250738585072014e-308, 'string': 'é', 'blob': b'\\x00\\xff'",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(read_again(&theirs, &bulk.columns), expected);
}

#[test]
fn what_is_no_such_file_is_refused_with_its_row_or_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let bulk = bulk();
    let file = File::create(&path).expect("a file");
    write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
    let refused = |columns: &[ColumnSpec]| {
        let why = objects(&path, columns, true, &mut |_, _| Ok(())).expect_err("refused");
        assert!(why.is::<BadInput>());
        why.to_string()
    };
    assert!(refused(&bulk.columns[1..]).contains("no column is \"bool\"; there are uint8"));
    let mut others = bulk.columns.clone();
    others[0].kind = Kind::Blob;
    assert!(refused(&others).contains("row 1: bool: it is no blob"));
    let whole = std::fs::read(&path).expect("bytes");
    for end in [0, 4, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).expect("written");
        assert!(refused(&bulk.columns).contains("x.parquet: "));
    }
    let mut other = bulk.clone();
    other.batch.folder = "/det/y".to_owned();
    let both = encode_insert([bulk, other].iter());
    let why = write(std::io::sink(), &both).expect_err("refused").to_string();
    assert!(why.contains("of one folder, and there are /det/x and /det/y: name one"), "{why}");
}

/// Writes a file of rows without columns of a folder.
fn write_rows(path: &Path, rows: &[[u64; 4]]) {
    let file = File::create(path).expect("a file");
    let (schema, properties) = (schema(&[]).expect("a schema"), WriterProperties::new());
    let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
    let mut cells = FLAT_BEGIN.map(|(_, kind)| Cells::of(kind));
    for row in rows {
        for (cells, value) in cells.iter_mut().zip(row) {
            cells.push(Value::Integer((*value).into()));
        }
    }
    let file = file.as_mut().expect("a writer");
    write_group(file, &mut cells).expect("written");
    file.finish().expect("written");
}

#[test]
fn the_records_of_an_object_are_of_one_interval_and_count_from_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let read = |rows: &[[u64; 4]]| {
        write_rows(&path, rows);
        let mut found = Vec::new();
        let each = &mut |(object, _): Begun, _| {
            found.push(object);
            Ok(())
        };
        objects(&path, &[], false, each).map(|()| found).map_err(|why| why.to_string())
    };
    let object = |records| Object { channel: 1, since: 0, until: 9, records };
    let begin = [1, 0, 9, 0];
    assert_eq!(read(&[begin, [1, 0, 9, 1]]), Ok(vec![object(2)]));
    for other in [[1, 0, 9, 2], [1, 0, 8, 1], [1, 1, 9, 1], [2, 0, 9, 1]] {
        let why = read(&[begin, other]).expect_err("refused");
        assert!(why.contains("row 2: its first record is another"), "{why}");
    }
    let why = read(&[begin, [1, 0, 9, 1], [1, 0, 9, 1]]).expect_err("refused");
    assert!(why.contains("row 3: "), "{why}");
}

#[test]
fn a_column_that_is_named_as_those_before_it_is_the_same_again() {
    let column = |name: &str| ColumnSpec { name: name.to_owned(), kind: Kind::Uint8 };
    let columns = ["record", "since", "since_"].map(column).to_vec();
    let mut bulk = Bulk::new("/det/x", None, false, columns);
    bulk.batch.objects.push(Object { channel: 1, since: 5, until: 9, records: 2 });
    for row in 0..2 {
        for (value, cells) in (0..).zip(&mut bulk.batch.payload.columns) {
            cells.push(&Value::Integer(10 * row + value)).expect("a number");
        }
        bulk.batch.payload.rows += 1;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let file = File::create(&path).expect("a file");
    write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
    let rows = (0..2).map(|row| bulk.batch.payload.row(row).collect());
    assert_eq!(read_again(&path, &bulk.columns), [(bulk.batch.objects[0], rows.collect())]);
}

#[test]
fn a_damaged_file_is_refused_or_read_and_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let bulk = bulk();
    let file = File::create(&path).expect("a file");
    write(&file, &encode_insert([bulk.clone()].iter())).expect("written");
    let whole = std::fs::read(&path).expect("bytes");
    for place in 0..whole.len() {
        for bits in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] ^= bits;
            std::fs::write(&path, &damaged).expect("written");
            let _ = objects(&path, &bulk.columns, true, &mut |_, _| Ok(()));
        }
    }
}
