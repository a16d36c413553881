//! Programs of the suite's own that load a target.

use std::path::Path;

use crate::common::{Place, code, stderr, stdout};

/// A suite of one cache with a client that is this shell script.
fn suite(script: &str, service: &str) -> String {
    let keys =
        if service == "cache" { "keys = { count = 100 }\nvalue = { bytes = 40 }" } else { "" };
    let operation = if service == "cache" { "get" } else { "request" };
    format!(
        "title = 'A program'\n[[target]]\nname = 'ours'\nserve = 'cache'\n\
         client = ['sh', '-c', {script:?}, 'client', '{{address}}', '{{port}}', '{{seconds}}', \
         '{{connections}}']\n\
         [workload]\nservice = '{service}'\noperation = '{operation}'\n{keys}\n\
         [[clients]]\nconnections = 3\n\
         [rounds]\ndisturbed = 'ignore'\nmeasure = '30ms'\nwarm_up = '10ms'\n\
         at_least = 1\nat_most = 1\n"
    )
}

fn run(suite: &str) -> (serde_json::Value, Place) {
    let place = Place::with(suite);
    let output = place.loadline(&["run", "suite.toml", "--wait", "--json"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    (serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{said}")), place)
}

#[test]
fn what_a_program_says_becomes_figures_and_counts_as_unchecked() {
    let script = r#"test "$1" = "127.0.0.1:$2" && test "$4" = 3 || exit 1
echo '{"t_ns": 1000}'
echo '{"t_ns": 10001000, "operations": 6, "latency_ns": [5000, 6000],'\
     '"figures": {"asked_s": '$3'}}'
echo '{"t_ns": 20001000, "operations": 4, "checked": true,'\
     '"latency_counts": [[7000, 4]]}'"#;
    for service in ["cache", "program"] {
        let (json, place) = run(&suite(script, service));
        let trial = &json["trials"][0];
        assert_eq!(trial["validity"], "valid", "{trial:#}");
        assert_eq!((&trial["operations"], &trial["unchecked"]), (&10.into(), &6.into()));
        assert_eq!(trial["measured_ns"], 20_000_000);
        assert_eq!(
            (&trial["latency_ns"]["max"], &trial["rate_per_s"]),
            (&7_003.into(), &500.0.into())
        );
        assert_eq!(trial["values"][0]["name"], "asked_s");
        assert_eq!(trial["values"][0]["mean"], 0.03);
        assert!(trial["generator"]["rss_bytes"].as_u64().expect("seen") > 0);
        let text = stdout(&place.loadline(&["report"]));
        assert!(text.contains("0 wrong of 4 checked, 6 unchecked"), "{text}");
        let description = json["targets"][0]["description"].as_str().expect("text");
        assert!(description.contains("loaded by sh -c"), "{description}");
    }
}

#[test]
fn a_program_that_fails_or_prints_something_else_makes_its_trial_invalid_and_says_why() {
    let begun = "echo '{\"t_ns\": 1}'";
    for (script, reason) in [
        (format!("{begun}; echo hello"), "line 2 of its output"),
        ("true".to_owned(), "it printed no line"),
        (format!("{begun}; echo sorry >&2; exit 7"), "it exited with status 7; its last lines"),
        (format!("{begun}; echo sorry >&2; exit 7"), "sorry"),
    ] {
        let (json, _) = run(&suite(&script, "program"));
        let trial = &json["trials"][0];
        assert_eq!(trial["validity"], "invalid", "{script}: {trial:#}");
        let said = trial["reason"].as_str().expect("a reason");
        assert!(said.contains(reason), "{script}: {said}");
    }
}

#[test]
fn a_program_stands_for_one_closed_group_and_its_room_needs_one() {
    let plan = |suite: &str| {
        let output = Place::with(suite).loadline(&["plan", "suite.toml"]);
        (code(&output), stderr(&output))
    };
    let open = suite("true", "cache").replace("connections = 3", "arrivals = { rate = '1/s' }");
    let (status, said) = plan(&open);
    assert!(status == 2 && said.contains("one group of clients"), "{said}");
    let without = suite("true", "program");
    let start = without.find("client = ").expect("a client");
    let end = without.find("[workload]").expect("a workload");
    let (status, said) = plan(&without.replace(&without[start..end], ""));
    assert!(status == 2 && said.contains("without client"), "{said}");
}

#[test]
fn the_python_client_loads_its_suite_without_a_wrong_answer() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        testing::skip("python3 is not installed");
        return;
    }
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/program-client.toml");
    let place = Place::with("");
    let mut arguments = vec!["run", suite.to_str().expect("UTF-8"), "--wait", "--json"];
    let settings = [
        "rounds.measure=60ms",
        "rounds.warm_up=0ms",
        "rounds.at_least=1",
        "rounds.at_most=1",
        "rounds.disturbed=\"ignore\"",
        "clients.cpus=[]",
        "target.loadline.cpus=[]",
        "target.python.cpus=[]",
    ];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    let output = place.loadline(&arguments);
    let json = serde_json::from_str::<serde_json::Value>(&stdout(&output));
    let json = json.unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let trials = json["trials"].as_array().expect("trials");
    let python = trials.iter().find(|one| one["target"] == "python").expect("a trial");
    assert_eq!((&python["validity"], &python["wrong"]), (&"valid".into(), &0.into()), "{python:#}");
    assert!(python["operations"].as_u64().expect("a count") > 0);
    assert_eq!(python["unchecked"], python["operations"]);
}
