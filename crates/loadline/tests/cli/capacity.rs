//! `loadline capacity`, from outside.

use crate::common::{Place, code, small_reads, stderr, stdout};

/// A cache that is asked for more than any host can give at some point.
fn suite() -> String {
    small_reads(&[("ours", "serve = \"cache\"")], REQUIRE)
}

const REQUIRE: &str = "[require]\nwrong = \"= 0\"";

#[test]
fn a_capacity_is_searched_in_one_run_whose_points_are_loads() {
    let place = Place::with(&suite());
    let search = ["capacity", "suite.toml", "--measure", "40ms", "--wait", "--json"];
    // Closed clients never ask for more than is answered, however slow this host is.
    let over = ["--over", "clients.connections", "--from", "1", "--most", "2"];
    let output = place.loadline(&[&search[..], &over[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let capacity = &json["capacity"];
    assert_eq!((&capacity["held"], &capacity["broken"]), (&2.0.into(), &serde_json::Value::Null));
    let probes = capacity["probes"].as_array().expect("probes");
    let loads: Vec<_> = probes.iter().filter_map(|probe| probe["load"].as_f64()).collect();
    assert_eq!(loads, [1.0, 2.0]);
    assert_eq!(probes[1]["point"]["clients.connections"], 2);
    let said = json["conclusion"].as_str().expect("a sentence");
    assert!(said.starts_with("ours carries at least 2 connections"), "{said}");
    assert!(stderr(&output).contains(": held"), "{}", stderr(&output));
    // Whether it holds a rate is the host's matter; that it is a schedule's is not.
    let over = ["--from", "500/s", "--most", "500/s"];
    let json = place.json(&[&search[..], &over[..]].concat(), &[0, 3, 4]);
    let tried = &json["capacity"]["probes"][0];
    assert_eq!(tried["point"]["clients.arrivals.rate"], "500.000/s");
}

#[test]
fn what_cant_be_searched_is_said_before_anything_starts() {
    let place = Place::with(&suite());
    let case = |suite: &str, arguments: &[&str], said: &str| {
        std::fs::write(place.path().join("suite.toml"), suite).expect("a suite");
        place.refuses(&[&["capacity", "suite.toml"], arguments].concat(), 2, said);
    };
    case(&suite(), &["--from", "fast"], "\"fast\" is no load of clients.arrivals.rate");
    case(&suite(), &["--target", "theirs"], "there is no target \"theirs\"");
    case(&suite(), &["--over", "clients.connectoins"], "did you mean `connections`?");
    case(&suite().replace(REQUIRE, ""), &[], "says nothing that must hold");
    let swept = format!("{}[sweep]\n\"clients.pipeline\" = [1, 2]\n", suite());
    case(&swept, &[], "the suite has 2 points");
}
