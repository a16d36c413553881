//! What services count themselves, read beside the load.

use crate::common::{Place, code, stderr, stdout};

const HEAD: &str = "title = 'Counters'\n[[target]]\nname = 'ours'\n";
const TAIL: &str = r#"
[[clients]]
connections = 2
[rounds]
disturbed = "ignore"
measure = "60ms"
slice = "30ms"
warm_up = "10ms"
at_least = 2
at_most = 2
"#;

fn outcomes(json: &serde_json::Value) -> Vec<(&str, &str)> {
    let all = json["requirements"].as_array().expect("requirements").iter();
    all.map(|one| (one["expression"].as_str().expect("t"), one["outcome"].as_str().expect("t")))
        .collect()
}

#[test]
fn a_caches_own_counts_agree_with_the_loads_and_can_be_required() {
    let middle = r#"
serve = "cache"
[workload]
service = "cache"
operation = "get"
keys = { count = 100 }
value = { bytes = 40 }
[derive]
hits = "service.get_hits.per_op"
[require]
hits = "= 1"
"service.get_misses" = "= 0"
"service.evictions.per_s" = "= 0"
"service.no_such_counter" = "= 0"
"#;
    let place = Place::with(&format!("{HEAD}{middle}{TAIL}"));
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(code(&output), 4, "what the service does not count can't be told: {said}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let trial = &json["trials"][0];
    let counters = trial["counters"].as_array().expect("counters");
    let counter = |name: &str| {
        let found = counters.iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {trial:#}"))
    };
    let hits = counter("get_hits");
    assert_eq!(hits["value"].as_f64(), trial["operations"].as_f64(), "{trial:#}");
    assert_eq!((&hits["per_op"], &hits["grows"]), (&1.0.into(), &true.into()));
    let items = counter("curr_items");
    assert_eq!((&items["value"], &items["grows"]), (&100.0.into(), &false.into()));
    let expected = [
        ("hits = 1", "held"),
        ("service.evictions.per_s = 0", "held"),
        ("service.get_misses = 0", "held"),
        ("service.no_such_counter = 0", "cant_tell"),
    ];
    assert_eq!(outcomes(&json), expected);
    let text = stdout(&place.loadline(&["report"]));
    let told = text.contains("ours counted per operation") && text.contains("get_hits 1 ");
    assert!(told, "{text}");
    let table = stdout(
        &place.loadline(&["ledger", "export", "last", "--format", "csv", "--table", "counters"]),
    );
    assert!(table.contains("ours,1,1,get_hits,1,"), "{table}");
}

#[test]
fn prometheus_text_is_read_from_where_the_suite_says() {
    let python = std::process::Command::new("python3").arg("--version").output();
    if python.is_err() {
        testing::skip("python3 is not installed");
        return;
    }
    let middle = r#"
setup = ["sh", "-c", "printf '%b' '# TYPE queue gauge\\nqueue 4\\n' > {dir}/metrics"]
command = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "{dir}", "{port}"]
speaks = "http"
counters = "http://127.0.0.1:{port}/metrics"
[workload]
service = "http"
operation = "page"
[[workload.request]]
name = "page"
path = "/metrics"
expect = { status = 200 }
[require]
"service.queue" = "= 4"
"#;
    let suite = format!("{HEAD}{middle}{TAIL}");
    let run = |suite: &str| -> serde_json::Value {
        let output = Place::with(suite).loadline(&["run", "suite.toml", "--wait", "--json"]);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{said}"))
    };
    let json = run(&suite);
    let held = [("service.queue = 4", "held")];
    assert_eq!(outcomes(&json), held, "{:#}", json["trials"]);
    let json = run(&suite.replace("{port}/metrics", "{port}/gone"));
    assert_eq!(json["trials"][0]["counters"], serde_json::json!([]), "unseen is not zero");
    assert!(outcomes(&json).iter().all(|(_, outcome)| *outcome == "cant_tell"));
    let place = Place::with(&suite.replace("\"http://127", "\"https://127"));
    let output = place.loadline(&["plan", "suite.toml"]);
    let said = stderr(&output);
    assert!(code(&output) == 2 && said.contains("Prometheus text"), "{said}");
}
