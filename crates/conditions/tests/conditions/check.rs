//! Whether a data directory is whole: beside a server, and after a byte of it has changed.

use std::time::Duration;

use conditions::server::check;

use crate::served::{folder, insert, serve};

#[test]
fn a_directory_is_whole_beside_its_server_and_a_changed_byte_is_named() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/f", "multi");
    let last = (0..20).fold(0, |_, n| insert(at, "/f", 1, (n, None), n as f64));
    let report = check(data.path()).expect("a report");
    assert_eq!(
        (report.journal.last, report.damaged.len(), report.journal.dropped),
        (last, 0, None)
    );
    server.stop(Duration::from_secs(1));
    let whole = check(data.path()).expect("a report");
    assert_eq!((whole.journal.last, whole.damaged.len()), (last, 0));
    let logs = std::fs::read_dir(data.path().join("journal")).expect("a folder");
    let mut logs: Vec<_> = logs.map(|entry| entry.expect("a file").path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    let log = &logs[0];
    let mut bytes = std::fs::read(log).expect("bytes");
    // In the first record, which groups that were durable later follow.
    bytes[100] ^= 1;
    std::fs::write(log, &bytes).expect("written");
    let report = check(data.path()).expect("a report");
    let named = report.damaged.join("\n");
    let name = log.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(named.contains(name), "{named:?}");
}
