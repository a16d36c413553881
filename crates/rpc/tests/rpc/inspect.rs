//! `loadline rpc inspect` and `loadline rpc codecs`.

use std::fs;

use crate::served::{lines, rpc, said};

fn text(args: &[&str]) -> String {
    let out = rpc(args);
    assert!(out.status.success(), "{}", said(&out));
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn the_bytes_of_julia_are_named() {
    let shown = text(&["inspect", "37 4a 4c 0f 04 00 00 00 31 ff ff ff ff"]);
    assert!(shown.contains("little-endian, 64 bits"), "{shown}");
    assert!(shown.contains("Int64  -1"), "{shown}");
    assert!(shown.ends_with("13  bytes: header 5, keys 1, padding 3, payload 4\n"), "{shown}");
    let string = text(&["inspect", "--codec", "julia", "21056162636465"]);
    assert!(string.contains("String  \"abcde\""), "{string}");
    for written in ["0x21 0x05 0x61 0x62 0x63 0x64 0x65", "0x21056162636465"] {
        assert_eq!(text(&["inspect", "--codec", "julia", written]), string);
    }
    let wrong = rpc(&["inspect", "2x"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
}

#[test]
fn a_message_of_a_file_is_shown_by_its_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let proto = "syntax = \"proto3\"; package p; import \"other.proto\";\n\
                 message Ship { string name = 1; Line line = 2; }\n";
    fs::write(at("ship.proto"), proto).expect("written");
    let file = at("ship.proto").display().to_string();
    let args = ["inspect", "--proto", &file, "--type", "p.Ship", "--json", "0a0161 1202 0803"];
    let out = rpc(&args);
    let why = said(&out);
    assert_eq!(out.status.code(), Some(2), "{why}");
    let looked = folder.path().display().to_string();
    assert!(why.contains("other.proto") && why.contains(&looked), "{why}");
    let other = "syntax = \"proto3\"; package p; message Line { int32 depth = 1; }\n";
    fs::write(at("other.proto"), other).expect("written");
    let json = &lines(&rpc(&args))[0];
    let pieces = json["pieces"].as_array().expect("pieces");
    let last = pieces.last().expect("one");
    assert_eq!((&last["field"], &last["value"]), (&"1 depth".into(), &"3".into()), "{json:#}");
    assert_eq!(json["causes"]["keys"], 3);
    let unknown = rpc(&["inspect", "--proto", &file, "--type", "p.Boat", "00"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("has no message p.Boat"), "{}", said(&unknown));
}

#[test]
fn what_is_wrong_says_where() {
    let out = rpc(&["inspect", "0801 1209 61"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        said(&out).contains("at byte 3: field 2 is 9 bytes long; bytes left: 1"),
        "{}",
        said(&out)
    );
    assert!(String::from_utf8_lossy(&out.stdout).contains("field 1, varint"));
    for wrong in ["0g", "080"] {
        assert_eq!(rpc(&["inspect", wrong]).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn what_codecs_can_is_printed() {
    assert!(text(&["codecs"]).contains("| one of several | yes |"));
    let json = &lines(&rpc(&["codecs", "--json"]))[0];
    let survive = json["capabilities"].as_array().expect("a list").iter();
    let survive =
        survive.clone().find(|one| one["question"] == "fields that it doesn't know survive it");
    assert_eq!(survive.expect("it is asked")["answers"]["protobuf"], "yes");
}
