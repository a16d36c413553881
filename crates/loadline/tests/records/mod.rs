//! `loadline serve records` and `loadline records`, from outside: beside EPICS programs that were
//! written by others.

mod common;
mod elder;
mod ioc;
mod pvxs;
mod reconnect;

use common::{Foreign, Served, ask, ask_as, peer, run};

/// What the tests of one server find there.
const RECORDS: &str = r#"
[[record]]
name = "temperature"
type = "double"
value = 20.5
units = "C"
control = { low = 0, high = 80 }
alarm = { high_warning = 60, high = 75 }

[[record]]
name = "wave"
type = "long[]"
value = [1, 2, 3]

[[record]]
name = "mode"
type = "enum"
choices = ["off", "on"]

[[record]]
name = "label"
type = "string"
value = "words"
writable = false

[[record]]
name = "table"
type = "table"
columns = { a = "string", b = "double" }
value = { a = ["x", "y"], b = [1, 2] }

[[record]]
name = "camera"
type = "ndarray"
"#;

#[test]
fn p4ps_client_gets_puts_monitors_and_calls() {
    let Some(python) = peer("python", "p4p") else { return };
    for (way, segment) in [("tcp", &["--segment", "1000"][..]), ("udp", &[])] {
        let served = Served::start(RECORDS, segment);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/clients.py");
        let address = served.address();
        let output = run(&python, &[script, address, served.search(), way]);
        assert_eq!(output, "all is well\n", "by {way}");
        let folder = tempfile::tempdir().expect("a folder");
        let npy = folder.path().join("image.npy");
        ask(address, &["get", "camera", "--npy", npy.to_str().expect("UTF-8")]).expect("an image");
        let image = std::fs::read(&npy).expect("a file");
        let head = String::from_utf8_lossy(&image[..128]).into_owned();
        assert!(head.contains("'<u2'") && head.contains("'shape': (3,4,)"), "{head}");
    }
}

#[test]
fn p4ps_command_line_reads_and_writes_a_record() {
    let Some(python) = peer("python", "p4p") else { return };
    let served = Served::start(RECORDS, &["--no-search"]);
    let said = |arguments: &[&str]| {
        let output = std::process::Command::new(&python)
            .args(["-m", "p4p.client.cli"])
            .args(arguments)
            .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
            .env("EPICS_PVA_NAME_SERVERS", served.address())
            .output()
            .expect("the program starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let read = said(&["get", "temperature"]);
    assert!(read.starts_with("temperature ") && read.contains(" 20.5"), "{read}");
    // p4p 4.3.0 puts, and then fails to print that it has.
    said(&["put", "temperature=33"]);
    let read = said(&["get", "temperature"]);
    assert!(read.contains(" 33.0"), "{read}");
}

#[test]
fn spvirits_tools_read_write_and_describe() {
    let Some(get) = peer("spget", "p4p") else { return };
    let served = Served::start(RECORDS, &["--no-search"]);
    let tool = |name: &str, arguments: &[&str]| {
        let server = ["--server", served.address()];
        run(&get.with_file_name(name), &[&server, arguments].concat())
    };
    assert!(tool("spget", &["temperature"]).contains("20.5"));
    assert!(tool("spput", &["temperature", "33"]).contains("OK"));
    assert!(tool("spget", &["temperature"]).contains("33"));
    assert!(tool("spinfo", &["wave"]).contains("value: long[]"));
}

#[test]
fn a_group_of_records_is_changed_as_a_whole() {
    let Some(python) = peer("python", "p4p") else { return };
    let group = "[[group]]\nname = \"both\"\nrecords = { t = \"temperature\", w = \"wave\" }\n\
                 [[access]]\nrecords = [\"wave\"]\nusers = [\"bob\"]\nrights = \"read\"\n";
    let served = Served::start(&format!("{RECORDS}{group}"), &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/groups.py");
    assert_eq!(run(&python, &[script, served.address()]), "all is well\n");
    let put = ["put", "both", "t.value=1", "w.value=[2,3]"];
    let refused = ask_as("bob", served.address(), &put).unwrap_err();
    assert!(refused.contains("you may not change both"), "{refused}");
    assert!(
        ask_as("alice", served.address(), &put).expect("an answer").contains("w.value  [2, 3]")
    );
}

/// What our client does with a server, whoever wrote it.
fn reads_and_writes(server: &str) {
    let said = |arguments: &[&str]| ask(server, arguments).expect("an answer");
    assert!(said(&["put", "number", "-2.5"]).contains("-2.5"));
    assert!(said(&["get", "number"]).contains("-2.5"));
    assert!(said(&["put", "mode", "on"]).ends_with("on\n"));
    assert!(ask(server, &["put", "mode", "up"]).unwrap_err().contains("is none of"));
    let object = said(&["get", "array", "--json", "--request", "field(value)"]);
    let object: serde_json::Value = serde_json::from_str(&object).expect("JSON");
    let array = object["value"]["value"].as_array().expect("a list");
    assert_eq!((array.len(), array[199_999].as_u64()), (200_000, Some(199_999)));
    let seven = ["put", "array", "--size", "100000", "--count", "7", "--delay", "0", "--json"];
    let seven = [&seven[..], &["--segment", "5000"]].concat();
    let report: serde_json::Value = serde_json::from_str(&said(&seven)).expect("JSON");
    assert_eq!((&report["puts"], &report["last"]), (&7.into(), &"6".into()));
    let again = ["get", "array", "--count", "9", "--delay", "0", "--recreate-get-every", "2"];
    let report = said(&[&again[..], &["--recreate-channel-every", "4", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["gets"], &report["elements"]), (&9.into(), &900_000.into()));
    assert!(said(&["info", "array"]).contains("long[] value"));
    for way in [&["--pipeline"][..], &[]] {
        let monitor = ["monitor", "number", "--count", "1"];
        assert!(said(&[&monitor[..], way].concat()).contains("-2.5"));
    }
    let listed = said(&["list"]);
    assert!(listed.lines().any(|line| line == "array"), "{listed}");
    assert!(ask(server, &["get", "nothing"]).unwrap_err().contains("nothing"));
}

#[test]
fn arrays_are_seen_in_shared_memory_by_who_asks_for_it() {
    let source = ["--producer", "array", "--size", "100000", "--delay", "0.01", "--monitors", "0"];
    let shares = [&["--no-search", "--shared-memory"][..], &source].concat();
    let served = Served::start(RECORDS, &shares);
    let count = |name: &str, how: &[&str], figure: &str| {
        let monitor = [&["monitor", name, "--count", "9", "--check", "--json"][..], how].concat();
        let said = ask(served.address(), &monitor).expect("reports");
        let lines = said.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.map(|line: serde_json::Value| line[figure].as_u64().expect("a count")).sum::<u64>()
    };
    assert_eq!(count("arrayPerformance", &["--shared"], "unlike"), 0);
    assert!(count("arrayPerformance", &["--shared"], "shared") > 0);
    assert_eq!(count("arrayPerformance", &[], "shared"), 0, "nobody asked");
    let wave = ["monitor", "wave", "--shared", "--count", "1", "--json"];
    let said = ask(served.address(), &wave).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&report["shared"], &report["elements"]), (&0.into(), &3.into()), "it isn't shared");
}

#[test]
fn many_channels_are_found_and_read_together_and_told_in_their_order() {
    const COUNT: usize = 700;
    let record = |at| format!("[[record]]\nname = \"r{at}\"\ntype = \"long\"\nvalue = {at}\n");
    let served = Served::start(&(0..COUNT).map(record).collect::<String>(), &[]);
    let mut names: Vec<String> = (0..COUNT).map(|at| format!("r{}", at * 3 % COUNT)).collect();
    let get = |timeout: &str, names: &[String]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["records", "--timeout", timeout, "get"])
            .args(names)
            .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
            .env("EPICS_PVA_ADDR_LIST", served.search())
            .output()
            .expect("loadline runs")
    };
    let told = get("60", &names);
    let text = String::from_utf8_lossy(&told.stdout);
    let read: Vec<_> = text.lines().filter_map(|line| line.split_once("  ")).collect();
    assert!(told.status.success() && read.len() == COUNT, "{told:?}");
    for ((name, held), asked) in read.iter().zip(&names) {
        assert_eq!(name, asked);
        assert!(held.ends_with(&format!("  {}", &name[1..])), "{name}: {held}");
    }
    names.insert(1, "nothing".to_owned());
    // All of this time is waited for the one that isn't there.
    let told = get("5", &names);
    let (text, why) =
        (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert_eq!(text.lines().count(), COUNT);
    assert!(why.contains("nothing: no server has") && why.contains("1 of 701"), "{why}");
    assert_eq!(told.status.code(), Some(1));
}

#[test]
fn our_client_reads_and_writes_at_our_server() {
    let wave: Vec<_> = (0..200_000).map(|at| at.to_string()).collect();
    let array = format!("name = \"array\"\ntype = \"long[]\"\nvalue = [{}]\n", wave.join(","));
    let records = RECORDS.replace("temperature", "number");
    let records = records.replace("low = 0", "low = -80");
    let served = Served::start(&format!("[[record]]\n{array}{records}"), &[]);
    reads_and_writes(served.address());
    let told = ask(served.address(), &["call", "server", "op=info"]).expect("an answer");
    assert!(told.contains("implLang  rust"), "{told}");
    // By its name alone: the search is answered where the environment says.
    let found = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["records", "get", "label"])
        .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
        .env("EPICS_PVA_ADDR_LIST", served.search())
        .output()
        .expect("loadline runs");
    assert!(String::from_utf8_lossy(&found.stdout).ends_with("words\n"));
}

#[test]
fn the_example_of_the_readme_is_served_and_found_without_saying_where() {
    let served = Served::start(include_str!("../../../records/examples/records.toml"), &[]);
    let (_, port) = served.search().split_once(':').expect("a port");
    let found = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["records", "get", "temperature", "both"])
        .env("EPICS_PVA_BROADCAST_PORT", port)
        .output()
        .expect("loadline runs");
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success() && text.starts_with("temperature  "), "{found:?}");
    // What wasn't asked for isn't zero.
    let part = ["get", "temperature", "--request", "field(value,display.units)"];
    let said = |how: &[&str]| ask(served.address(), &[&part[..], how].concat()).expect("a value");
    assert_eq!(said(&[]), "temperature  20.5 C\n");
    let json: serde_json::Value = serde_json::from_str(&said(&["--json"])).expect("JSON");
    assert_eq!(json["value"], serde_json::json!({ "value": 20.5, "display": { "units": "C" } }));
}

#[test]
fn what_was_not_asked_for_is_not_shown() {
    let served = Served::start(RECORDS, &[]);
    let asks = |arguments: &[&str]| ask(served.address(), arguments).expect("an answer");
    let get = |request| asks(&["get", "temperature", "--request", request]);
    assert_eq!(get("field(value)"), "temperature  20.5\n");
    assert_eq!(get("field(alarm.severity)"), "temperature  alarm.severity  0\n");
    let json = ["get", "temperature", "--json", "--request", "field(value,alarm.severity)"];
    let said: serde_json::Value = serde_json::from_str(&asks(&json)).expect("JSON");
    assert_eq!(said["value"], serde_json::json!({ "value": 20.5, "alarm": { "severity": 0 } }));
    let monitor = ["monitor", "temperature", "--count", "1", "--request", "field(value)"];
    assert_eq!(asks(&monitor), "temperature  20.5\n");
}

#[test]
fn servers_are_found_by_ipv6_too() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        testing::skip("this host has no IPv6");
        return;
    }
    let served = Served::start_at("[::1]:0", RECORDS, &[]);
    assert!(served.search().starts_with("[::1]:"), "{}", served.search());
    // An address of IPv4 beside it, where nobody answers.
    let found = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["records", "get", "label"])
        .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
        .env("EPICS_PVA_ADDR_LIST", format!("127.0.0.1 {}", served.search()))
        .output()
        .expect("loadline runs");
    assert!(String::from_utf8_lossy(&found.stdout).ends_with("words\n"), "{found:?}");
}

#[test]
fn our_client_reads_and_writes_at_p4ps_server() {
    let Some(python) = peer("python", "p4p") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/server.py");
    let foreign = Foreign::start(&python, &[script]);
    reads_and_writes(foreign.address());
    let sum = ask(foreign.address(), &["call", "sum", "a=2", "b=3.5"]).expect("an answer");
    assert_eq!(sum, "value  5.5\n");
}

#[test]
fn a_source_of_arrays_is_monitored_and_one_that_is_too_large_is_refused() {
    let source = ["--producer", "array", "--size", "50000", "--queue-size", "3"];
    let own = ["--monitors", "1", "--provider", "remote", "--wait", "0.01"];
    let served = Served::start(RECORDS, &[&source[..], &own].concat());
    let folder = tempfile::tempdir().expect("a folder");
    let npy = folder.path().join("last.npy");
    let monitor = ["monitor", "arrayPerformance", "--count", "40", "--json", "--npy"];
    let monitor = [&monitor[..], &[npy.to_str().expect("UTF-8")]].concat();
    let said = ask(served.address(), &monitor).expect("an answer");
    let mut updates = 0;
    for line in said.lines() {
        let report: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(report["first"], report["last"], "{report}");
        updates += report["updates"].as_u64().expect("a count");
    }
    assert_eq!(updates, 40);
    let last = std::fs::read(&npy).expect("a file");
    assert!(last.starts_with(b"\x93NUMPY") && last.len() == 128 + 8 * 50_000);
    assert_eq!(last[128..136], last[last.len() - 8..], "one number all through");
    if let Some(python) = peer("python", "p4p") {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/arrays.py");
        assert_eq!(run(&python, &[script, served.address()]), "all is well\n");
    }
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["serve", "records", "--listen", "127.0.0.1:0", "--producer", "array", "--size"])
        .args(["400000000", "--queue-size", "1000000", "--max-message", "3.5GiB"])
        .output()
        .expect("loadline runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("use a smaller size or queue"), "{said}");
}

#[test]
fn who_says_how_often_or_how_fast_repeats() {
    let served = Served::start(RECORDS, &[]);
    let lines = |arguments: &[&str]| {
        let said = ask(served.address(), &[arguments, &["--json", "--count", "3"]].concat());
        let reports = said.expect("reports");
        let count = |line: &str, what: &str| -> u64 {
            let report: serde_json::Value = serde_json::from_str(line).expect("JSON");
            report[what].as_u64().expect("a count")
        };
        let what = if arguments[0] == "get" { "gets" } else { "puts" };
        reports.lines().map(|line| count(line, what)).sum::<u64>()
    };
    assert_eq!(lines(&["get", "wave", "--delay", "0"]), 3);
    assert_eq!(lines(&["get", "wave", "--recreate-channel-every", "0", "--delay", "0"]), 3);
    assert_eq!(lines(&["put", "wave", "--size", "4", "--recreate-put-every", "1"]), 3);
    let refused = |arguments: &[&str]| ask(served.address(), arguments).expect_err("too large");
    let said = refused(&["put", "wave", "--size", "200000000000"]);
    assert!(said.contains("a message has at most"), "{said}");
    for name in ["server", r"two\nlines"] {
        let made = format!("toml=[[record]]\nname = \"{name}\"\ntype = \"int\"\n");
        let said = refused(&["call", "server", "op=create", &made]);
        assert!(said.contains("no name for a record"), "{said}");
    }
}

#[test]
fn arrays_whose_elements_are_not_alike_fail_a_check() {
    let same = "[[record]]\nname = \"same\"\ntype = \"long[]\"\nvalue = [4, 4, 4]\n";
    let served = Served::start(&format!("{RECORDS}{same}"), &["--no-search"]);
    for command in [&["monitor"][..], &["get", "--delay", "0"]] {
        let checked = |name| {
            let arguments = [command, &["--count", "1", "--check", name]].concat();
            ask(served.address(), &arguments)
        };
        assert!(checked("same").expect("it is as checked").contains("0 unlike"));
        let error = checked("wave").unwrap_err();
        assert!(error.contains("wave: 1 of the arrays had elements that differ"), "{error}");
    }
}

/// A log once it has this many lines: a thread of its own writes it.
fn lines_of(log: &std::path::Path, lines: usize) -> String {
    let started = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(log).expect("a log");
        if text.lines().count() >= lines && text.ends_with('\n') {
            return text;
        }
        assert!(started.elapsed().as_secs() < 60, "{lines} lines never came: {text}");
        std::thread::yield_now();
    }
}

#[test]
fn the_log_of_puts_is_opened_as_root_and_belongs_to_the_user_that_the_service_becomes() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("puts.jsonl");
    if std::fs::metadata(folder.path()).expect("there").uid() != 0 {
        testing::skip("only root can become another user");
        return;
    }
    // Nobody else may make a file here.
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(folder.path(), mode).expect("changed");
    let arguments = ["--put-log", log.to_str().expect("UTF-8"), "-u", "nobody"];
    let served = Served::start(RECORDS, &arguments);
    let owner = std::fs::metadata(&log).expect("there").uid();
    assert_ne!(owner, 0);
    ask(served.address(), &["put", "temperature", "30"]).expect("it is put");
    assert!(lines_of(&log, 1).contains("\"now\":{\"value\":\"30\""));
}

#[test]
fn rules_say_who_may_do_what_and_puts_are_logged() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("puts.jsonl");
    let rules = "[[access]]\nrecords = [\"wave\"]\nusers = [\"nobody*\"]\nrights = \"none\"\n\
                 [[access]]\nusers = [\"anonymous\"]\nhosts = [\"127.*\"]\nrights = \"read\"\n";
    let arguments = ["--put-log", log.to_str().expect("UTF-8")];
    let served = Served::start(&format!("{rules}{RECORDS}"), &arguments);
    let asks = |user: &str, arguments: &[&str]| ask_as(user, served.address(), arguments);
    assert!(asks("alice", &["put", "temperature", "30"]).is_ok());
    assert!(asks("alice", &["put", "temperature", "99"]).is_err());
    let refused = asks("alice", &["put", "temperature", "31", "--anonymous"]).unwrap_err();
    assert!(refused.contains("you may not change temperature"), "{refused}");
    assert!(asks("alice", &["get", "temperature", "--anonymous"]).is_ok());
    assert!(asks("nobody1", &["get", "wave"]).unwrap_err().contains("may not use \"wave\""));
    let text = lines_of(&log, 3);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let said: Vec<_> = lines.iter().map(|line| (&line["user"], &line["now"]["value"])).collect();
    assert_eq!(
        said,
        [
            (&"alice".into(), &"30".into()),
            (&"alice".into(), &"30".into()),
            (&"anonymous".into(), &"30".into()),
        ]
    );
    let refused = |at: usize| lines[at]["refused"].as_str().is_some();
    assert!(!refused(0) && refused(1) && refused(2), "{text}");
}

#[test]
fn pvagw_stands_in_front_of_our_server() {
    let Some(gateway) = peer("pvagw", "p4p") else { return };
    let served = Served::start(RECORDS, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("gateway.json");
    let search = served.search().rsplit(':').next().expect("a port").to_owned();
    let [port, own_search] = common::free_ports();
    let text = format!(
        r#"{{"version": 2,
        "clients": [{{"name": "c", "provider": "pva", "addrlist": "127.0.0.1",
                      "autoaddrlist": false, "bcastport": {search}}}],
        "servers": [{{"name": "s", "clients": ["c"], "interface": ["127.0.0.1"],
                      "serverport": {port}, "bcastport": {own_search},
                      "autoaddrlist": false, "addrlist": "127.0.0.1"}}]}}"#
    );
    std::fs::write(&config, text).expect("written");
    let _gateway = common::Background::start(&gateway, &config);
    let address = format!("127.0.0.1:{port}");
    common::until_ready(&address);
    // The gateway answers a search for a channel once it has found it itself.
    let found = || common::find_by(own_search, "temperature").contains("20.5");
    assert!(common::comes_true(found), "the gateway finds the record");
    let asks = |arguments: &[&str]| ask(&address, arguments).expect("an answer");
    assert!(asks(&["put", "temperature", "44"]).contains("44"));
    assert!(ask(served.address(), &["get", "temperature"]).expect("an answer").contains("44"));
    assert!(asks(&["monitor", "temperature", "--count", "1"]).contains("44"));
    let refused = ask(&address, &["put", "temperature", "99"]).unwrap_err();
    assert!(refused.contains("outside of the limits"), "{refused}");
    // As p4p's own `test_get_mask` has it: what isn't asked for isn't sent.
    let script = format!(
        "import os\nos.environ.update(EPICS_PVA_AUTO_ADDR_LIST='NO', \
         EPICS_PVA_NAME_SERVERS='{address}')\nfrom p4p.client.thread import Context\n\
         with Context('pva') as client:\n    \
         raw = client.get('temperature', request='timeStamp').raw\n    \
         print(raw.changed('value'), raw.changed('timeStamp.secondsPastEpoch'))\n"
    );
    let python = gateway.with_file_name("python");
    assert_eq!(run(&python, &["-c", &script]), "False True\n");
}

#[test]
fn a_config_with_a_mistake_says_file_line_and_what_would_be_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, "[[record]]\nname = \"a\"\ntype = \"real\"\n").expect("written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["serve", "records", "--config"])
        .arg(&path)
        .output()
        .expect("loadline runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("wrong.toml") && said.contains("line 3"), "{said}");
    assert!(said.contains("\"real\" is no type; write boolean"), "{said}");
}
