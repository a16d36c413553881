//! Our client at the IOCs of Python's wheels: the database of EPICS behind pvxs, and behind
//! pvAccessCPP.

use super::common::{Foreign, ask, free_ports, peer};

#[test]
fn our_client_reads_and_writes_at_iocs() {
    let Some(python) = peer("python", "pvxslibs") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/ioc.py");
    for which in ["pvxs", "pvaccess"] {
        let [port, search, other] = free_ports().map(|port| port.to_string());
        let ioc = Foreign::start(&python, &[script, which, &port, &search, &other]);
        let said = |arguments: &[&str]| {
            ask(ioc.address(), arguments).unwrap_or_else(|why| panic!("{which}: {why}"))
        };
        assert!(said(&["get", "number"]).ends_with("1.5 C\n"), "{which}");
        assert!(said(&["put", "number", "-2.5"]).contains("-2.5"), "{which}");
        assert!(said(&["put", "number", "99"]).contains("10 C"), "{which}: it drives no further");
        assert!(said(&["put", "mode", "on"]).contains("on"), "{which}");
        assert!(said(&["get", "label"]).ends_with("words\n"), "{which}");
        let put = ["put", "array", "--size", "100000", "--count", "3", "--delay", "0"];
        said(&put);
        let array = said(&["get", "array"]);
        assert!(array.contains("[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, … 100000 in all]"), "{array}");
        assert!(said(&["info", "array"]).contains("int[] value"), "{which}");
        assert!(said(&["monitor", "number", "--count", "1"]).contains("10 C"), "{which}");
        let group = said(&["get", "both", "--json"]);
        let group: serde_json::Value = serde_json::from_str(&group).expect("JSON");
        assert_eq!(group["value"]["n"]["value"], 10.0, "{which}: {group}");
        let listed = said(&["list"]);
        assert!(listed.lines().any(|line| line == "label"), "{which}: {listed}");
    }
}
