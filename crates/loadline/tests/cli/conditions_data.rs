//! The data directory of conditions from outside: whether it is whole, and copies of it, beside its
//! server and without it.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::common::{Place, code, stderr, stdout};
use crate::served::Served;

fn serve(place: &Place, data: &str) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "conditions", "--listen", "127.0.0.1:0", "--data", data]);
    command.current_dir(place.path()).stdin(Stdio::null());
    Served::spawn(command)
}

/// `loadline conditions --json ARGUMENTS`: its code, and what it prints.
fn ask(place: &Place, arguments: &[&str]) -> (i32, Value, String) {
    let output = place.loadline(&[&["conditions", "--json"], arguments].concat());
    let json = serde_json::from_str(&stdout(&output)).unwrap_or_default();
    (code(&output), json, stderr(&output))
}

#[test]
fn a_check_says_by_its_code_whether_a_directory_is_whole_damaged_or_none_and_a_backup_is_served() {
    let place = Place::with("");
    let served = serve(&place, "data");
    let server = served.address().to_owned();
    let insert = |channel: &str| {
        let object = ["insert", "/f", "--channel", channel, "--since", "1", "v=2"];
        ask(&place, &[&["--server", &server], &object[..]].concat())
    };
    let made = ask(&place, &["--server", &server, "create", "/f", "--column", "v=float"]);
    assert_eq!(made.0, 0, "{}", made.2);
    assert_eq!(insert("1").1["revision"], 2);
    // Beside the server.
    let (code, report, said) = ask(&place, &["check", "data"]);
    assert_eq!((code, &report["revision"]), (0, &2.into()), "{said}");
    let (code, copied, said) = ask(&place, &["backup", "data", "copy"]);
    assert_eq!((code, &copied["revision"]), (0, &2.into()), "{said}");
    assert_eq!(insert("2").1["revision"], 3);
    assert!(served.stop());
    // Without it; the copy is one of its own.
    assert_eq!(ask(&place, &["check", "data"]).1["revision"], 3);
    assert_eq!(ask(&place, &["check", "copy"]).1["revision"], 2);
    assert_eq!(ask(&place, &["backup", "data", "copy"]).0, 2, "it is there");
    assert_eq!(ask(&place, &["backup", "no", "other"]).0, 2, "there is no data");
    for none in ["no", "."] {
        let (code, _, said) = ask(&place, &["check", none]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("no data directory"), "{said}");
    }
    let served = serve(&place, "copy");
    let (code, found, said) = ask(&place, &["--server", served.address(), "get", "/f", "1"]);
    assert_eq!((code, found["objects"].as_array().map(Vec::len)), (0, Some(1)), "{said}");
    drop(served);
    // What a crash leaves of one that was being made.
    std::fs::remove_file(place.path().join("copy/FORMAT")).expect("a file");
    let (code, _, said) = ask(&place, &["check", "copy"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("did not come to its end"), "{said}");
    let serve = ["serve", "conditions", "--listen", "127.0.0.1:0", "--data", "copy"];
    place.refuses(&serve, 2, "no FORMAT");
    // The first record, behind which there are others.
    let log = place.path().join("data/journal/00000000000000000001.log");
    let mut bytes = std::fs::read(&log).expect("a log");
    bytes[100] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    let (code, report, said) = ask(&place, &["check", "data"]);
    assert_eq!((code, report["damaged"].as_array().map(Vec::len)), (1, Some(1)), "{said}");
    assert!(said.contains("00000000000000000001.log, byte 100"), "{said}");
    assert_eq!(ask(&place, &["backup", "data", "third"]).0, 1, "it is damaged");
    std::fs::remove_dir_all(place.path().join("data/journal")).expect("removed");
    assert_eq!(ask(&place, &["check", "data"]).0, 2, "it can't be read");
}
