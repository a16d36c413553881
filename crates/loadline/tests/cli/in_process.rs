//! Operations without a socket.

use crate::common::{Place, code, stderr, stdout};

fn suite(target: &str, operation: &str) -> String {
    let service = if target == "http" { "http-codec" } else { "cache-codec" };
    format!(
        "title = 'Codecs'\n[[target]]\nname = 'ours'\nin_process = '{target}'\n\
         [workload]\nservice = '{service}'\noperation = '{operation}'\nkeys = {{ count = 100 }}\n\
         value = {{ bytes = 40 }}\n[[clients]]\n\
         [rounds]\ndisturbed = 'ignore'\nmeasure = '60ms'\nslice = '30ms'\nwarm_up = '0s'\n\
         at_least = 1\nat_most = 1\n"
    )
}

#[test]
fn parsers_are_measured_in_samples_with_bytes_and_allocations_per_operation() {
    for (target, operation, allocations) in [
        ("text", "read_get", 0.0),
        ("meta", "read_set", 0.0),
        ("binary", "read_get", 0.0),
        ("http", "read_answer", 0.0),
    ] {
        let place = Place::with(&suite(target, operation));
        let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
        let json = serde_json::from_str::<serde_json::Value>(&stdout(&output));
        let json = json.unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let trial = &json["trials"][0];
        assert_eq!(json["little"], serde_json::json!([]), "latencies are of samples");
        assert_eq!(
            (&trial["validity"], &trial["wrong"]),
            (&"valid".into(), &0.into()),
            "{trial:#}"
        );
        assert_eq!(trial["unchecked"], 0);
        let value = |name: &str| -> f64 {
            let values = trial["values"].as_array().expect("values");
            let found = values.iter().find(|one| one["name"] == name);
            found
                .and_then(|one| one["mean"].as_f64())
                .unwrap_or_else(|| panic!("{name}: {trial:#}"))
        };
        assert!(value("time_ns") > 0.0 && value("time_least_ns") > 0.0);
        assert_eq!(value("allocations_per_op"), allocations, "{target}");
        assert!(value("bytes_per_op") > 10.0);
        let operations = trial["operations"].as_f64().expect("a count");
        let evaluated = value("samples") * value("evaluations_per_sample");
        assert!(operations > 0.0 && evaluated > 0.0);
        let cpu_ns = trial["server"]["cpu_ns_per_op"].as_f64().expect("seen");
        assert!(cpu_ns > 0.0 && cpu_ns < 1e6, "{cpu_ns}");
        assert!(trial["server"]["rss_bytes"].as_u64().expect("seen") > 100_000);
        let text = stdout(&place.loadline(&["report"]));
        let samples = text.lines().find(|line| line.contains(" to p99 "));
        let samples = samples.unwrap_or_else(|| panic!("no samples: {text}"));
        assert!(samples.contains('█') && samples.contains(" ± "), "{samples}");
    }
}

#[test]
fn a_program_may_be_an_implementation_and_its_cost_is_the_targets() {
    let begin = r#"{"t_ns": 0}"#;
    let end = r#"{"t_ns": 9000, "operations": 10, "checked": true, "latency_ns": [900],
                  "user_ns": 4000, "system_ns": 1000}"#;
    let end = end.replace('\n', " ");
    let target = format!("in_process = 'text'\nclient = ['printf', '%s\\n', '{begin}', '{end}']");
    let written = suite("text", "read_get").replace("in_process = 'text'", &target);
    let output = Place::with(&written).loadline(&["run", "suite.toml", "--wait", "--json"]);
    let json = serde_json::from_str::<serde_json::Value>(&stdout(&output));
    let json = json.unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let trial = &json["trials"][0];
    assert_eq!(trial["validity"], "valid", "{trial:#}");
    // Two slices of 30 ms.
    assert_eq!((&trial["operations"], &trial["unchecked"]), (&20.into(), &0.into()), "{trial:#}");
    assert_eq!(trial["server"]["cpu_ns_per_op"], 500.0, "{trial:#}");
    let both = written.replace("client =", "command =");
    let output = Place::with(&both).loadline(&["plan", "suite.toml"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("no more than its client"), "{}", stderr(&output));
}

#[test]
fn what_needs_a_socket_and_what_does_not_are_told_apart() {
    let plan = |suite: &str| {
        let output = Place::with(suite).loadline(&["plan", "suite.toml"]);
        (code(&output), stderr(&output))
    };
    let served = suite("text", "read_get").replace("in_process = 'text'", "serve = 'cache'");
    let (status, said) = plan(&served);
    assert!(status == 2 && said.contains("needs no socket"), "{said}");
    let unknown = suite("txt", "read_get");
    let (status, said) = plan(&unknown);
    assert!(status == 2 && said.contains("did you mean \"text\""), "{said}");
    let several = suite("text", "read_get").replace("[[clients]]", "[[clients]]\nconnections = 2");
    let (status, said) = plan(&several);
    assert!(status == 2 && said.contains("one thread evaluates"), "{said}");
}
