//! The published client of NoPayloadDB, unchanged, against our server.

use std::path::Path;
use std::process::Command;

use service::Tokens;

use crate::served::serve;

#[test]
fn the_published_client_of_nopayloaddb_works_unchanged() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/venv/conditions/bin/python");
    if !python.exists() {
        testing::skip(
            "nopayloaddb-client is not installed (`cargo xtask peers` installs the peers)",
        );
        return;
    }
    let data = tempfile::tempdir().expect("a folder");
    let (tokens, folder) = (data.path().join("tokens"), data.path().join("client"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(&tokens, "0123456789abcdef\n").expect("written");
    let tokens = Tokens::read(tokens).expect("tokens");
    let server = serve(&data.path().join("data"), Some(tokens));
    let url = format!("http://{}", server.addresses()[0]);
    let script = here.join("tests/conditions/nopayload_client.py");
    let mut client = Command::new(python);
    client.arg(script).args([&url, "0123456789abcdef"]).arg(&folder);
    // What is set for another server must not lead there.
    for name in ["URL", "FILES_URL", "SOURCE_NAME", "TOKEN", "CACHE_DIR"] {
        client.env_remove(format!("NOPAYLOADDB_{name}"));
    }
    let client = client.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("Python");
    let said = String::from_utf8_lossy(&client.stdout);
    let wrong = String::from_utf8_lossy(&client.stderr);
    assert!(client.status.success() && said.contains("the client is content"), "{said}\n{wrong}");
}
