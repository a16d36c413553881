//! The JSON is as docs/json.md describes it.

use std::collections::BTreeSet;

use crate::fixture::Bench;
use ledger::RequirementOutcome;
use serde_json::{Value, json};

const DOCS: &str = include_str!("../../../docs/json.md");

fn full_run() -> Value {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("cache/get  16 conns", 16);
    bench.rounds_of(&[200_000; 5]);
    bench.round();
    let trial = bench.trial(0, 200_000, 33_000, |row| row.wrong = 1);
    bench.finding(trial, "stale", &[0, 255], &[0]);
    bench.lag(trial, "readers", "get", 12_000);
    bench.slow(trial, 7_000_000);
    bench.event(trial, "fails", (15, 17));
    bench.streams(trial, "watchers", &[40, 60], 8);
    bench.value(trial, 0, "wall_s", 1.5);
    bench.counter(trial, "cmd_get", true, 500_000.0);
    bench.reached(trial, 1, "server_thread", "it runs 99 % of the time");
    bench.advised(trial, 1, "index");
    bench.carried(1, "latency.mean <= 5s", 1e9, 5e9);
    bench.slices(trial, &[(100_000, true); 3]);
    bench.rungs(&["the plain one", "a change"]);
    bench.profile(1, 1, &[("find", 0.2)]);
    bench.requirement("wrong = 0", 1.0, RequirementOutcome::Broken);
    bench.contest(24, &[5]);
    report::json(&bench.finish())
}

#[test]
fn every_key_is_documented() {
    let mut keys = BTreeSet::new();
    gather(&full_run(), &mut keys);
    assert!(keys.len() > 60);
    for key in keys {
        assert!(DOCS.contains(&format!("`{key}`")), "docs/json.md doesn't name `{key}`");
    }
}

/// All keys but those of a point, of settings, of facts and of a fingerprint, which the suite, the
/// user and the host choose.
fn gather(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, keys)),
        Value::Object(map) => {
            for (key, inner) in map {
                keys.insert(key.clone());
                if !["point", "settings", "fingerprint", "facts"].contains(&&key[..]) {
                    gather(inner, keys);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn trials_and_comparisons_have_the_promised_shape() {
    let json = full_run();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["run"]["id"], 1);
    let point = json!({"clients.connections": 16, "workload.operation": "get"});
    let trial = &json["trials"][0];
    assert_eq!((&trial["target"], &trial["point"]), (&json!("loadline"), &point));
    assert_eq!((&trial["round"], &trial["validity"]), (&json!(1), &json!("valid")));
    assert_eq!(trial["hit_ratio"], Value::Null);
    assert_eq!(trial["latency_ns"]["p50"], 33_023);
    let rate = &json["comparisons"][0];
    assert_eq!((&rate["a"], &rate["b"]), (&json!("loadline"), &json!("memcached")));
    assert_eq!((&rate["metric"], &rate["verdict"]), (&json!("rate_per_s"), &json!("better")));
    assert!((rate["ratio"].as_f64().unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(
        (&rate["point"], &rate["rounds"], &rate["primary"]),
        (&point, &json!(5), &json!(true))
    );
    assert_eq!(json["findings"][0]["expected_hex"], "00ff");
    let carried = &json["carried"][0];
    assert_eq!((&carried["target"], &carried["load"]), (&json!("memcached"), &json!("ATLAS")));
    assert_eq!((&carried["outcome"], &carried["times"]), (&json!("held"), &json!(5.0)));
    assert_eq!(json["trials"][10]["statements"][0]["waits"]["running"], 3.0);
    let advised = &json["points"][0]["targets"][0];
    assert_eq!(advised["waits"][0], json!({ "class": "running", "share": 0.75 }));
    assert_eq!(
        (&advised["advice"][0]["code"], &advised["advice"][0]["first_in"]),
        (&json!("index"), &json!(1))
    );
    assert_eq!(json["outcome"], "broken");
}

#[test]
fn what_groups_saw_slow_requests_and_figures_of_calls_are_there() {
    let json = full_run();
    let trial = &json["trials"][10];
    let group = &trial["groups"][0];
    assert_eq!((&group["clients"], &group["operation"]), (&json!("readers"), &json!("get")));
    assert_eq!(group["lag_ns"]["p99"], 12_007);
    assert_eq!(trial["lag_ns"]["p99"], 12_007);
    assert_eq!(json["trials"][0]["lag_ns"], Value::Null);
    let wall = json!({
        "name": "wall_s", "count": 1, "min": 1.5, "median": 1.5, "mean": 1.5, "max": 1.5,
        "in_order": [1.5],
    });
    assert_eq!(trial["values"], json!([wall]));
    let counted = json!({"name": "cmd_get", "grows": true, "value": 500_000.0, "per_op": 0.5});
    assert_eq!(trial["counters"], json!([counted]));
    let watchers = &trial["stream_groups"][0];
    assert_eq!((&watchers["clients"], &watchers["updates"]), (&json!("watchers"), &json!(100)));
    assert_eq!((&trial["updates_per_s"], &trial["missed"]), (&json!(20.0), &json!(8)));
    assert_eq!((&trial["merged"], &trial["least_updates"]), (&json!(4), &json!(40)));
    assert_eq!(
        (&trial["fairness"], &trial["staleness_ns"]["p50"]),
        (&json!(0.875), &json!(1_000_447))
    );
    assert_eq!(json["trials"][0]["streams"], Value::Null);
    let event = &json["events"][0];
    assert_eq!((&event["trial"], &event["at_ns"]), (&trial["id"], &json!(1_500_000_000)));
    assert_eq!((&event["took_ns"], &event["name"]), (&json!(200_000_000), &json!("fails")));
    assert_eq!((&event["exit_status"], &event["failure"]), (&json!(3), &json!("exit status: 3")));
    let slow = &json["slow"][0];
    assert_eq!((&slow["trial"], &slow["latency_ns"]), (&trial["id"], &json!(7_000_000)));
    assert_eq!((&trial["failed_at"], &trial["overloaded"]), (&Value::Null, &json!(false)));
}

#[test]
fn one_round_has_a_ratio_and_no_interval() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[200_000]);
    let json = report::json(&bench.finish());
    let rate = &json["comparisons"][0];
    assert_eq!((&rate["low"], &rate["high"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&rate["verdict"], &rate["reason"]),
        (&json!("cant_tell"), &json!("too_few_rounds"))
    );
    assert_eq!(rate["more_rounds"], 4);
    assert_eq!(json["points"][0]["targets"][0]["rate_per_s_half_width"], Value::Null);
}
