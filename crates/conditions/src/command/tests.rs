//! The commands as they are typed, beside a server of their own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser as _;
use serde_json::{Value as Json, json};
use service::{Face, HttpSettings, Run as _};

use super::ConditionsArgs;
use crate::client::Client;
use crate::server::{BoundConditions, ConditionsServer};

#[derive(clap::Parser)]
struct Typed {
    #[command(flatten)]
    args: ConditionsArgs,
}

/// Runs what is typed behind `loadline conditions --server AT`; an error is what it says.
fn typed(at: &str, words: &[&str]) -> Result<(), String> {
    let words = [&["conditions", "--server", at], words].concat();
    let typed = Typed::try_parse_from(words).map_err(|why| why.to_string())?;
    typed.args.run().map(drop).map_err(|failure| failure.to_string())
}

/// Why what is typed there is not done.
fn typed_error(at: &str, words: &[&str]) -> anyhow::Error {
    let typed = Typed::try_parse_from([&["conditions"], words].concat()).expect("a command");
    let client = Client::new(at, None, Duration::from_secs(60));
    let context = super::Context { client, json: false };
    typed.args.command.run(&context).expect_err("refused")
}

/// A server, and a folder for files.
pub(super) struct Place {
    files: tempfile::TempDir,
    server: ConditionsServer,
}

impl Place {
    fn new() -> Self {
        let files = tempfile::tempdir().expect("a folder");
        let address = ([127, 0, 0, 1], 0).into();
        let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
        let bound = BoundConditions::bind(vec![settings]).expect("an address");
        let server = bound.start(&files.path().join("data")).expect("a server");
        Self { files, server }
    }

    /// With a folder of these columns.
    pub(super) fn with(path: &str, more: &[&str]) -> Self {
        let place = Self::new();
        place.does(&[&["create", path], more].concat());
        place
    }

    pub(super) fn at(&self) -> String {
        self.server.addresses()[0].to_string()
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.file(name), text).expect("written");
        self.file(name)
    }

    pub(super) fn does(&self, words: &[&str]) {
        typed(&self.at(), words).expect("done");
    }

    fn refuses(&self, words: &[&str], said: &[&str]) {
        let why = typed(&self.at(), words).expect_err("refused");
        for said in said {
            assert!(why.contains(said), "{words:?}: {said:?} is not in {why:?}");
        }
    }

    fn export(&self, name: &str, words: &[&str]) -> String {
        self.does(&[&["export", "--out", &self.file(name)], words].concat());
        std::fs::read_to_string(self.file(name)).expect("text")
    }

    fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Json {
        let client = Client::new(&self.at(), None, Duration::from_secs(60));
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        client.get_json(path, &parameters).expect("an answer")
    }

    fn count(&self, folder: &str) -> Json {
        self.get("/count", &[("folder", folder)])["objects"].clone()
    }
}

#[test]
fn lines_of_a_file_go_to_the_folder_and_tag_that_are_named_or_nowhere() {
    let place = Place::with("/live", &["--multi", "--column", "v=int32"]);
    place.does(&["create", "/test", "--multi", "--column", "v=int32"]);
    let line = |more: &str, v: u32| {
        format!("{{{more}\"channel\":1,\"since\":0,\"until\":\"max\",\"values\":[{v}]}}\n")
    };
    let other = line("", 1) + &line("\"folder\":\"/live\",", 999);
    let file = place.write("live.jsonl", &other);
    place.refuses(&["insert", "/test", "--file", &file], &["live.jsonl:2: ", "\"/live\""]);
    let tagged = line("", 1) + &line("\"tag\":\"a\",", 2);
    let file = place.write("tag.jsonl", &tagged);
    let words = ["insert", "/test", "--tag", "b", "--file", &file];
    place.refuses(&words, &["tag.jsonl:2: ", "\"a\""]);
    let only = place.write("only.jsonl", &line("\"tag\":\"b\",\"only_tag\":true,", 2));
    place.refuses(&["insert", "/test", "--tag", "b", "--file", &only], &["only.jsonl:1: "]);
    for folder in ["/live", "/test"] {
        assert_eq!(place.count(folder), 0, "{folder}");
    }
    let own = line("\"folder\":\"/test\",", 1) + &line("", 7);
    place.does(&["insert", "/test", "--file", &place.write("own.jsonl", &own)]);
    let found = place.get("/find", &[("folder", "/test"), ("t", "5")]);
    assert_eq!(found["objects"][0]["records"], json!([[7]]));
    place.does(&[
        "insert",
        "--file",
        &place.write("all.jsonl", &other.replace("{\"ch", "{\"folder\":\"/test\",\"ch")),
    ]);
    assert_eq!(place.count("/live"), 1);
}

#[test]
fn a_csv_is_taken_as_it_is_meant_or_not_at_all() {
    let place = Place::with("/f", &["--column", "s=string", "--column", "n=int32"]);
    let head = "channel,since,until,s,n\n";
    let rows: String = (1..500).map(|n| format!("1,{n},{},\"x\",{n}\n", n + 1)).collect();
    for (rows, said) in [
        (format!("1,0,1,\"open,1\n{rows}"), "f.csv:2: the quote that opens here"),
        (format!("{rows}1,500,,\"open"), "f.csv:501: the quote that opens here"),
        ("1,0,1,\"ab\"c,1\n".to_owned(), "f.csv:2: "),
        ("1,0,1,ab\"c,1\n".to_owned(), "f.csv:2: "),
        (format!("{rows}1,20,15,x,1\n"), "f.csv:501: [20, 15) is no interval"),
        ("1,0,1,x\n".to_owned(), "f.csv:2: 4 fields"),
    ] {
        let file = place.write("f.csv", &(head.to_owned() + &rows));
        place.refuses(&["insert", "/f", "--file", &file], &[said]);
    }
    let lacks = place.write("lacks.csv", "channel,since,s\n1,0,x\n");
    place.refuses(&["insert", "/f", "--file", &lacks], &["lacks.csv:1: ", "n", "--allow-missing"]);
    place.refuses(&["insert", "/f", "--since", "0", "s=x"], &["n", "--allow-missing"]);
    assert_eq!(place.count("/f"), 0);
    place.does(&["insert", "/f", "--file", &lacks, "--allow-missing"]);
    place.does(&["insert", "/f", "--since", "9", "s=x", "--allow-missing"]);
    assert_eq!(place.count("/f"), 2);
}

#[test]
fn a_csv_that_is_exported_and_inserted_again_is_the_same() {
    let columns = ["--column", "s=string", "--column", "b=blob", "--column", "v=double"];
    let place = Place::with("/one", &columns);
    place.does(&[&["create", "/two", "--multi"], &columns[..]].concat());
    let objects = [
        r#""channel":1,"since":0,"until":10,"records":[["","",1e300],[null,null,null]]"#,
        r#""channel":1,"since":10,"until":20,"records":[]"#,
        r#""channel":2,"since":0,"until":"max","records":[["a \"b\"\r\nc, ","AAE=","NaN"]]"#,
    ];
    let lines = |folder: &str| -> String {
        objects.iter().map(|one| format!("{{\"folder\":{folder:?},{one}}}\n")).collect()
    };
    let all = lines("/one") + &lines("/two");
    place.does(&["insert", "--file", &place.write("all.jsonl", &all)]);
    let copy = Place::with("/one", &columns);
    copy.does(&[&["create", "/two", "--multi"], &columns[..]].concat());
    for folder in ["/one", "/two"] {
        let name = folder.trim_start_matches('/').to_owned() + ".csv";
        let csv = place.export(&name, &[folder]);
        copy.does(&["insert", folder, "--file", &place.file(&name)]);
        assert_eq!(copy.export(&name, &[folder]), csv);
        let browse = |place: &Place| place.get("/browse", &[("folder", folder)]);
        assert_eq!(browse(&copy), browse(&place), "{csv}");
    }
    place.does(&["create", "/times", "--column", "since=int32"]);
    let out = place.file("times.csv");
    place.refuses(&["export", "/times", "--out", &out], &["\"since\"", "jsonl"]);
    place.refuses(&["export", "--out", &place.file("x.xyz")], &["--format"]);
}

#[test]
fn a_refused_object_is_named_by_its_line_and_an_insertion_goes_on_behind_what_is_there() {
    let place = Place::with("/f", &["--column", "v=string"]);
    place.does(&["insert", "/f", "--since", "7", "--until", "8", "v=x"]);
    let row = |n: u32| format!("0,{n},{},\"a\nb\"\n", n + 1);
    let csv =
        "channel,since,until,v\n\n".to_owned() + &(0..6).chain([7, 8]).map(row).collect::<String>();
    let file = place.write("f.csv", &csv);
    let words = ["insert", "/f", "--file", &file, "--batch", "2"];
    place.refuses(
        &words,
        &["the first 6 objects", "line 13", "--skip 6", "f.csv:15: object [7, 8) "],
    );
    assert_eq!(place.count("/f"), 7);
    let words = [&words[..], &["--skip", "7"]].concat();
    place.does(&words);
    assert_eq!(place.count("/f"), 8);
    place.refuses(&["insert", "/f", "--file", &file, "--skip", "9"], &["8 objects"]);
}

#[test]
fn a_file_is_checked_without_an_insertion() {
    let place = Place::with("/f", &["--column", "v=int32"]);
    let good = place.write("good.csv", "channel,since,v\n0,1,1\n0,2,2\n");
    place.does(&["insert", "/f", "--file", &good, "--dry-run", "--batch", "1"]);
    let bad = place.write("bad.csv", "channel,since,v\n0,1,1\n0,2,x\n");
    let words = ["insert", "/f", "--file", &bad, "--dry-run", "--batch", "1"];
    place.refuses(&words, &["nothing is inserted: ", "bad.csv:3: v: "]);
    assert_eq!(place.count("/f"), 0);
    place.does(&["insert", "/f", "--file", &good]);
    place.does(&["export", "--out", &place.file("f.bin")]);
    place.does(&["insert", "--file", &place.file("f.bin"), "--dry-run"]);
    place.does(&["add-column", "/f", "w=bool"]);
    place.refuses(&["insert", "--file", &place.file("f.bin"), "--dry-run"], &["f.bin: "]);
    assert_eq!(place.count("/f"), 2);
}

#[cfg(feature = "sqlite")]
#[test]
fn sql_asks_what_a_tag_showed_at_a_time() {
    let place = Place::with("/det/t", &["--column", "v=int32"]);
    place.does(&["insert", "/det/t", "--since", "0", "v=1"]);
    place.does(&["tag", "create", "run", "/det"]);
    place.does(&["insert", "/det/t", "--since", "10", "v=2"]);
    for (of, expected) in [(&["--tag", "run"][..], 1), (&[], 2)] {
        let out = place.file(&format!("{expected}.sqlite"));
        place.does(&[&["export", "/det", "--time", "15", "--out", &out], of].concat());
        let database = rusqlite::Connection::open(&out).expect("a database");
        let asked = "SELECT group_concat(v) FROM \"/det/t\" WHERE since <= 15 AND until > 15";
        let found: String = database.query_row(asked, [], |row| row.get(0)).expect("an answer");
        assert_eq!(found, expected.to_string());
    }
}

#[test]
fn what_a_time_shows_is_explained() {
    let place = Place::with("/f", &["--column", "v=int32"]);
    place.does(&["insert", "/f", "--since", "1", "v=7"]);
    place.does(&["explain", "/f", "5", "--channels", "0"]);
    place.does(&["get", "/f", "5", "--why"]);
    assert!(typed(&place.at(), &["explain", "/f", "5", "--where", "v=7"]).is_err());
    let error = typed_error(&place.at(), &["explain", "/none", "1"]);
    assert!(error.to_string().contains("/none"), "{error}");
}

#[test]
fn any_number_of_channels_can_be_named() {
    let place = Place::with("/many", &["--column", "v=int32"]);
    for channel in ["3", "4", "59998"] {
        place.does(&["insert", "/many", "--channel", channel, "--since", "5", "v=7"]);
    }
    // 170 kB of ranges: a request's head has room for 16 KiB.
    let even: Vec<_> = (0..30_000).map(|number| (2 * number).to_string()).collect();
    let even = even.join(",");
    let found = place.get("/find", &[("folder", "/many"), ("t", "5"), ("channels", &even)]);
    let channels: Vec<_> = found["objects"].as_array().expect("a list").iter().collect();
    assert_eq!(channels.len(), 2, "{found}");
    for words in [
        &["get", "/many", "5"][..],
        &["browse", "/many"],
        &["browse", "/many", "--count"],
        &["explain", "/many", "5"],
        &["diff", "/many", "--revision", "1"],
    ] {
        place.does(&[words, &["--channels", &even]].concat());
    }
    let exported = place.export("even.jsonl", &["/many", "--channels", &even]);
    assert_eq!(exported.lines().count(), 2, "{exported}");
}

#[test]
fn a_refusal_is_json_where_that_is_asked_for() {
    let place = Place::with("/f", &["--column", "v=int32"]);
    let error = typed_error(&place.at(), &["get", "/none", "1"]);
    let said = super::refused(&error);
    assert_eq!((&said["schema"], &said["status"]), (&json!(1), &json!(404)));
    assert!(said["refused"]["fix"].as_str().expect("text").contains("list"), "{said}");
    assert!(said["error"].as_str().expect("text").contains("/none"), "{said}");
    let said = super::refused(&typed_error(&place.at(), &["insert", "/f", "--since", "1", "v"]));
    assert!(said["status"].is_null() && said["error"].is_string(), "{said}");
}

#[test]
fn a_count_is_asked_and_a_slice_or_export_never_written_over() {
    let place = Place::with("/f", &["--column", "v=string"]);
    place.does(&["browse", "/f", "--count"]);
    let out = place.write("f.slice", "mine");
    place.refuses(&["slice", "0", "--out", &out], &["f.slice"]);
    let out = place.write("f.jsonl", "mine");
    place.refuses(&["export", "--out", &out], &["f.jsonl"]);
    assert_eq!(std::fs::read_to_string(&out).expect("text"), "mine");
}

#[test]
fn a_difference_is_of_two_versions() {
    let place = Place::with("/f", &["--column", "v=int32"]);
    place.refuses(&["diff", "/f", "--since", "1"], &["diff /f --tag TAG"]);
    for version in [
        ["--tag", "HEAD"],
        ["--revision", "1"],
        ["--as-of", "2026-11-23T07:00:00Z"],
        ["--to-tag", "HEAD"],
        ["--to-revision", "1"],
        ["--to-as-of", "2026-11-23T07:00:00Z"],
    ] {
        place.does(&[&["diff", "/f"][..], &version].concat());
    }
}

#[test]
fn a_time_for_answers_is_typed_as_seconds_or_with_its_unit() {
    let timeout = |written: &str| super::timeout(written).map(|time| time.as_millis());
    assert_eq!([timeout("60"), timeout("1500ms")], [Ok(60_000), Ok(1_500)]);
    assert_eq!([timeout("2min"), timeout("24h")], [Ok(120_000), Ok(86_400_000)]);
    for wrong in ["0", "0s", "25h", "86401", "1.5", "-1", "5 days", ""] {
        assert!(timeout(wrong).expect_err(wrong).contains("30s"), "{wrong}");
    }
}

/// Reads a request with its body, and returns its first line.
fn request(socket: &mut BufReader<TcpStream>) -> String {
    let mut first = String::new();
    socket.read_line(&mut first).expect("a request");
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        socket.read_line(&mut line).expect("a header");
        let text = line.trim().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        length = text.strip_prefix("content-length: ").map_or(length, |n| n.parse().expect("n"));
    }
    socket.read_exact(&mut vec![0; length]).expect("a body");
    first
}

/// A server that answers each request with such bytes, and then breaks off.
fn breaking(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let at = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = BufReader::new(socket.expect("a client"));
            let sent = answer(&request(&mut socket));
            socket.get_mut().write_all(sent.as_bytes()).expect("sent");
        }
    });
    at
}

#[test]
fn an_export_that_breaks_off_leaves_no_file_and_has_no_name_before_its_end() {
    let files = tempfile::tempdir().expect("a folder");
    let out = files.path().join("f.jsonl");
    let seen: PathBuf = out.clone();
    let at = breaking(move |_| {
        // Whoever sees the name sees all of it.
        if seen.exists() {
            return "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned();
        }
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{}\n\r\n".to_owned()
    });
    let out = out.display().to_string();
    let why = typed(&at, &["export", "--out", &out]).expect_err("broken off");
    assert!(why.contains("f.jsonl is not written") && why.contains("broke off"), "{why}");
    assert_eq!(std::fs::read_dir(files.path()).expect("a folder").count(), 0);
}

#[test]
fn what_became_of_a_part_without_an_answer_is_said_to_be_unknown() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("f.csv");
    std::fs::write(&file, "channel,since,v\n0,1,1\n0,2,2\n0,3,3\n").expect("written");
    let parts = std::sync::atomic::AtomicU32::new(0);
    let at = breaking(move |first| {
        let columns = json!([{ "name": "v", "kind": "int32" }]);
        let folders = json!({ "folders": [{ "path": "/f", "columns": columns }], "sets": [] });
        let body = match first.starts_with("GET") {
            true => folders.to_string(),
            false if parts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 => {
                "{\"revision\":2}".to_owned()
            }
            false => return String::new(),
        };
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    });
    let file = file.display().to_string();
    let words = ["insert", "/f", "--file", &file, "--batch", "2"];
    let why = typed(&at, &words).expect_err("broken off");
    for said in ["the first 2 objects", "line 3", "unknown", "--skip 2", "--skip 3"] {
        assert!(why.contains(said), "{said}: {why}");
    }
    let at = TcpListener::bind("127.0.0.1:0").expect("an address").local_addr().expect("bound");
    let why = typed(&at.to_string(), &["list"]).expect_err("refused");
    assert!(why.contains("loadline serve conditions"), "{why}");
}

#[test]
fn a_certificate_is_for_the_name_that_was_typed_and_an_address_has_none() {
    let name = |typed: &str| super::server(typed).expect(typed).name;
    assert_eq!(name("localhost:8360").as_deref(), Some("localhost"));
    assert_eq!(name("localhost").as_deref(), Some("localhost"));
    assert_eq!(name("127.0.0.1:8360"), None);
    assert_eq!(name("[::1]:8360"), None);
}
