//! Slices in Arrow's streaming format, as pyarrow reads them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::served::{change, folder, get, insert, serve};

/// Prints each stream that is behind the one before: its folder, types and rows.
const SCRIPT: &str = "
import sys, pyarrow
from pyarrow import ipc
source = pyarrow.BufferReader(open(sys.argv[1], 'rb').read())
while source.tell() < source.size():
    reader = ipc.open_stream(source)
    table = reader.read_all()
    table.validate(full=True)
    print({k.decode(): v.decode() for k, v in table.schema.metadata.items()})
    print([str(one) for one in table.schema.types])
    for row in table.to_pylist():
        print(row)
";

#[test]
fn pyarrow_reads_a_slice_folder_by_folder() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let column = |name, kind| json!({ "name": name, "kind": kind });
    let columns = [
        column("v", "float"),
        column("n", "uint64"),
        column("s", "string"),
        column("b", "blob"),
        column("ok", "bool"),
    ];
    change(at, "/folders", &json!({ "path": "/det/a", "versioning": "multi", "columns": columns }));
    folder(at, "/det/b", "single");
    let objects = json!([
        { "channel": 3, "since": 5, "until": 9,
          "records": [[1.5, u64::MAX, "é", "AP8=", true], [null, 0, "", null, false]] },
        { "channel": 4, "since": 5, "records": [] },
    ]);
    change(at, "/objects", &json!({ "batches": [{ "folder": "/det/a", "objects": objects }] }));
    insert(at, "/det/b", 7, (0, None), 0.25);
    let slice = get(at, "/api/v1/slice?t=6&under=/det&format=arrow&redirect=false", &[]);
    assert_eq!(slice.header("content-type"), "application/vnd.apache.arrow.stream");
    let place = slice.header("content-location").to_owned();
    assert_eq!(get(at, &place, &[]).body, slice.body, "at its place");
    let refused = get(at, "/api/v1/export?under=/det&format=arrow", &[]);
    assert_eq!(refused.status, 400);
    server.stop(Duration::from_secs(1));

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/venv/conditions/bin/python");
    if !python.exists() {
        testing::skip("pyarrow is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let file = data.path().join("slice.arrows");
    std::fs::write(&file, &slice.body).expect("written");
    let out = Command::new(python).args(["-c", SCRIPT]).arg(&file).output().expect("Python");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for part in [
        "'folder': '/det/a'",
        "'folder': '/det/b'",
        "['uint32', 'int64', 'int64', 'uint32', 'float', 'uint64', 'large_string', \
         'large_binary', 'bool']",
        "'record': 0, 'v': 1.5, 'n': 18446744073709551615, 's': 'é'",
        "'b': b'\\x00\\xff', 'ok': True}",
        "'channel': 4, 'since': 5, 'until': 9223372036854775807, 'record': None, 'v': None",
        "'channel': 7, 'since': 0, 'until': 9223372036854775807, 'record': 0, 'value': 0.25}",
        &format!("'revision': '{}'", place.split('/').nth(4).expect("a revision")),
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}
