//! Beside pvAccessCPP, the older implementation of EPICS: its client, from C++ and from Python, and
//! pvDatabase's server. It is the peer for what pvxs doesn't have: put-get, process, puts into
//! parts of arrays, and sending in segments.

use super::RECORDS;
use super::common::{Foreign, Served, ask, built, free_ports, peer, run};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/");

#[test]
fn pvapys_client_gets_puts_put_gets_and_monitors() {
    let Some(python) = peer("python", "pvaccess") else { return };
    for segment in [&[][..], &["--segment", "4096"]] {
        let served = Served::start(RECORDS, segment);
        let script = format!("{SCRIPTS}pvapy_client.py");
        assert_eq!(run(&python, &[&script, served.search()]), "all is well\n", "{segment:?}");
    }
}

#[test]
fn pv_access_cpps_client_put_gets_and_processes() {
    let Some(client) = built("pvaccess-client") else { return };
    let served = Served::start(RECORDS, &[]);
    let said = run(&client, &["put-get", "temperature", served.search(), "61.5"]);
    assert_eq!(said, "get 20.5\nput-get 61.5\nput 61.5\n");
    let time = || {
        let said = ask(served.address(), &["get", "temperature", "--json"]).expect("an answer");
        let object: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        object["value"]["timeStamp"].clone()
    };
    let before = time();
    assert_eq!(run(&client, &["process", "temperature", served.search(), "3"]), "processed 3\n");
    assert_ne!(time(), before, "a record that is processed takes the time");
}

#[test]
fn our_client_put_gets_processes_and_puts_parts_at_pv_databases_server() {
    let Some(python) = peer("python", "pvaccess") else { return };
    let [port, search] = free_ports().map(|port| port.to_string());
    let foreign = Foreign::start(&python, &[&format!("{SCRIPTS}pvapy_server.py"), &port, &search]);
    let said = |arguments: &[&str]| ask(foreign.address(), arguments).expect("an answer");
    assert_eq!(said(&["put", "number", "2.5", "--put-get"]), "number  2.5\n");
    assert_eq!(said(&["process", "number"]), "number  2.5\n");
    // What pvDatabase takes of parts is what our server takes, to the last element. (Where a part
    // begins beyond the array's end, pvDatabase has what the memory held before, and ours zeros.)
    let declared = "[[record]]\nname = \"wave\"\ntype = \"long[]\"\nvalue = [0, 1, 2, 3, 4]\n";
    let served = Served::start(declared, &["--no-search"]);
    for (part, put) in [
        ("1:2", &["7", "8"][..]),
        ("-2", &["17", "18"]),
        ("0:2:-1", &["27", "28", "29"]),
        ("1:1", &["37", "38"]),
        ("4:6", &["47", "48", "49"]),
        ("7:7", &["57"]),
        ("0:-20", &["67"]),
        ("3:2", &["77"]),
        ("0:3", &["87"]),
    ] {
        let request = format!("field(value[array={part}])");
        let put = [&["put", "wave"], put, &["--request", &request]].concat();
        let [theirs, ours] = [foreign.address(), served.address()].map(|server| {
            let is_taken = ask(server, &put).is_ok();
            let said = ask(server, &["get", "wave"]).expect("a value");
            (is_taken, said.rsplit("  ").next().map(str::to_owned))
        });
        assert_eq!(theirs, ours, "{part}");
    }
}

#[test]
fn segments_are_understood_both_ways() {
    let Some(python) = peer("python", "pvaccess") else { return };
    let [port, search] = free_ports().map(|port| port.to_string());
    let foreign = Foreign::start(&python, &[&format!("{SCRIPTS}pvapy_server.py"), &port, &search]);
    let wave: Vec<_> = (0..200_000).map(|at| at.to_string()).collect();
    let declared = format!("[[record]]\nname=\"big\"\ntype=\"long[]\"\nvalue=[{}]", wave.join(","));
    let served = Served::start(&declared, &["--no-search", "--segment", "10kB"]);
    for server in [foreign.address(), served.address()] {
        let said = ask(server, &["get", "big", "--json", "--request", "field(value)"]);
        let object: serde_json::Value = serde_json::from_str(&said.expect("one")).expect("JSON");
        let array = object["value"]["value"].as_array().expect("a list");
        assert_eq!((array.len(), array[199_999].as_u64()), (200_000, Some(199_999)));
        let put = ["put", "big", "--size", "100000", "--count", "3", "--delay", "0"];
        let put = [&put[..], &["--segment", "3000"]].concat();
        ask(server, &put).expect("the puts are taken");
        let said = ask(server, &["get", "big"]).expect("one");
        assert!(said.contains("[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, … 100000 in all]"), "{said}");
    }
}
