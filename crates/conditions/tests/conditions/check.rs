//! Whether a data directory is whole: beside a server, and after a byte of it has changed.

use std::time::Duration;

use conditions::server::check;

use crate::served::{ask, folder, insert, serve};

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

#[test]
fn a_stored_file_with_other_bytes_or_none_is_named_whether_a_snapshot_names_it_or_a_log() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let put = |key: &str, bytes: &[u8]| {
        assert_eq!(ask(at, "PUT", &format!("/upload/{key}"), &[], bytes).status, 201);
    };
    put("a/sealed", b"sealed");
    server.seal().expect("a seal");
    put("a/logged", b"logged");
    let report = check(data.path()).expect("a report");
    assert_eq!((report.stored_files, &report.damaged[..]), (2, &[][..]));
    let files = data.path().join("files");
    let folders =
        std::fs::read_dir(&files).expect("a folder").map(|entry| entry.expect("one").path());
    let stored: Vec<_> = folders
        .filter(|path| !path.ends_with("incoming"))
        .map(|path| {
            std::fs::read_dir(path).expect("a folder").next().expect("one").expect("a file")
        })
        .map(|entry| entry.path())
        .collect();
    for path in &stored {
        let whole = std::fs::read(path).expect("bytes");
        let key = format!("a/{}", String::from_utf8_lossy(&whole));
        std::fs::write(path, "Sealed").expect("written");
        let named = check(data.path()).expect("a report").damaged.join("; ");
        assert!(named.contains(&key) && named.contains("is damaged"), "{named}");
        std::fs::remove_file(path).expect("removed");
        let named = check(data.path()).expect("a report").damaged.join("; ");
        assert!(named.contains(&key), "{named}");
        std::fs::write(path, whole).expect("written");
    }
    assert_eq!((stored.len(), check(data.path()).expect("a report").damaged), (2, Vec::new()));
}
