//! Beside pvxs itself: small C++ programs of ours around its client and its server.

use super::RECORDS;
use super::common::{Foreign, Served, ask, built, run};

/// What pvxs' client says at the end of two seconds.
fn loaded(arguments: &[&str]) -> Option<serde_json::Value> {
    let client = built("pvxs-client")?;
    let said = run(&client, &[arguments, &["--seconds", "2"]].concat());
    let total = said.lines().last().expect("a line");
    let total: serde_json::Value = serde_json::from_str(total).expect("JSON");
    assert_eq!((&total["errors"], &total["wrong"]), (&0.into(), &0.into()), "{total}");
    assert!(total["operations"].as_u64().expect("a count") > 0, "{total}");
    Some(total)
}

#[test]
fn pvxs_client_gets_puts_and_monitors_at_our_server() {
    let records = "[[record]]\nname = \"number\"\ntype = \"long\"\n\
                   [[record]]\nname = \"array\"\ntype = \"long[]\"\n";
    let source = ["--producer", "array", "--size", "20000", "--monitors", "0", "--no-search"];
    for segment in [&[][..], &["--segment", "9000"]] {
        let served = Served::start(records, &[&source[..], segment].concat());
        let server = ["--server", served.address()];
        for what in [
            &["get", "number"][..],
            &["get", "number", "--reexecute", "no"],
            &["put", "number", "--outstanding", "10"],
            &["put", "array", "--elements", "100000"],
            &["get", "array"],
            &["monitor", "arrayPerformance", "--queue-size", "4"],
            &["monitor", "arrayPerformance", "--pipeline", "yes"],
        ] {
            if loaded(&[what, &server].concat()).is_none() {
                return;
            }
        }
    }
}

#[test]
fn our_client_reads_and_writes_at_pvxs_server() {
    let Some(server) = built("pvxs-server") else { return };
    let scalars = Foreign::start(&server, &["--records", "3"]);
    let said = |arguments: &[&str]| ask(scalars.address(), arguments).expect("an answer");
    assert!(said(&["put", "k0000001", "-7"]).ends_with("-7\n"));
    let many = said(&["get", "k0000000", "k0000001"]);
    let ends: Vec<_> = many.lines().filter_map(|line| line.rsplit("  ").next()).collect();
    assert_eq!(ends, ["0", "-7"], "{many}");
    assert!(said(&["info", "k0000002"]).contains("long value"));
    assert_eq!(said(&["list"]), "k0000000\nk0000001\nk0000002\n");
    assert!(said(&["monitor", "k0000001", "--count", "1", "--pipeline"]).contains("-7"));
    let refused = ask(scalars.address(), &["put", "k0000000", "1", "--put-get"]).unwrap_err();
    assert!(refused.contains("k0000000"), "pvxs has no put-get: {refused}");
    let produce = ["--produce", "yes", "--elements", "50000", "--name", "wave"];
    let arrays = Foreign::start(&server, &produce);
    let monitor = ["monitor", "wave", "--count", "20", "--queue-size", "4", "--json"];
    let mut updates = 0;
    for line in ask(arrays.address(), &monitor).expect("an answer").lines() {
        let report: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(report["first"], report["last"], "{report}");
        updates += report["updates"].as_u64().expect("a count");
    }
    assert_eq!(updates, 20);
}

#[test]
fn pvxs_client_is_refused_what_a_record_does_not_take() {
    let Some(client) = built("pvxs-client") else { return };
    let served = Served::start(RECORDS, &["--no-search"]);
    let put = ["put", "temperature", "--seconds", "2", "--server", served.address()];
    let output = std::process::Command::new(client).args(put).output().expect("it starts");
    // It counts up from one, and the record takes no more than 80.
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("outside of the limits of temperature"), "{told}");
}
