//! Conditions under load: data that are prepared once and lent to every start, targets that are
//! measured at some points, PostgreSQL beside our server, and every suite of the service.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{Place, code, plans_every_suite, stderr, stdout};
use crate::served::Served;

const OURS: &str = "[[target]]\nname = \"loadline\"\nserve = \"conditions\"\n\
                    options = { data = \"{data}\" }\ndata = \"reuse\"\n";

/// A suite of short rounds; `more` are further targets.
fn suite(more: &str, operation: &str) -> String {
    format!(
        r#"title = "Conditions"
{OURS}{more}[workload]
service = "conditions"
operation = "{operation}"
folders = 3
channels = 4
intervals = 5
fields = 2
[[clients]]
timeout = "20s"
[sweep]
"clients.connections" = [1, 3]
[rounds]
measure = "60ms"
slice = "30ms"
warm_up = "10ms"
at_least = 2
at_most = 2
disturbed = "ignore"
"#
    )
}

/// The kept data sets.
fn kept(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path().join(".loadline/data")).expect("data sets");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn data_that_are_reused_are_prepared_once_and_are_there_at_every_start() {
    let place = Place::with(&suite("", "slice"));
    assert_eq!(place.trials().len(), 4);
    let [data] = &kept(&place)[..] else { panic!("one data set") };
    // A later run that prepared anew would bring it back.
    let mark = data.join("mark");
    std::fs::write(&mark, "").expect("a file");
    assert_eq!(place.trials().len(), 4);
    assert!(mark.exists() && kept(&place).len() == 1, "the same data set, not a copy of it");
    // Other data are another set.
    let other = suite("", "slice").replace("folders = 3", "folders = 2");
    std::fs::write(place.path().join("suite.toml"), other).expect("a suite");
    assert_eq!(place.trials().len(), 4);
    assert_eq!(kept(&place).len(), 2);
}

#[test]
fn jobs_arrive_in_simulated_time_and_read_behind_a_live_writer() {
    let group = |name: &str, operation: &str, connections: u32, every: &str| {
        format!(
            "[[clients]]\nname = \"{name}\"\noperation = \"{operation}\"\ntimeout = \"20s\"\n\
             connections = {connections}\narrivals = {{ every = \"{every}\" }}\n"
        )
    };
    let jobs = group("jobs", "job", 5, "500ms") + &group("writer", "append", 1, "1s");
    let text = suite("", "slice").replace("operation = \"slice\"\n", "");
    let text = text.replace("[[clients]]\ntimeout = \"20s\"\n", &jobs);
    let text = text.replace("fields = 2", "fields = 2\nsince = { behind = 3, jobs = 2 }");
    let text = text.replace("[sweep]\n\"clients.connections\" = [1, 3]\n", "");
    let text =
        text.replace("\"reuse\"", "\"keep\"").replace("slice = \"30ms\"", "slice = \"none\"");
    let place = Place::with(&format!("time_scale = 20\n{text}"));
    let trials = place.trials();
    assert_eq!(trials.len(), 2);
    let report = stdout(&place.loadline(&["report", "last"]));
    assert!(report.contains("every 500 ms at 20 × time"), "{report}");
    let stray = format!("time_scale = 20\n{}", suite("", "slice"));
    let said = "no schedule is in simulated time";
    Place::with(&stray).refuses(&["plan", "suite.toml"], 2, said);
    let said = "simulated time runs above 0";
    let none = format!("time_scale = 0\n{text}");
    Place::with(&none).refuses(&["plan", "suite.toml"], 2, said);
    let said = "append goes on from intervals one after another";
    let long = text.replace("fields = 2", "fields = 2\nlong = \"infinite\"");
    Place::with(&long).refuses(&["plan", "suite.toml"], 2, said);
}

#[test]
fn the_question_of_nopayloaddb_is_answered_in_the_smallest_scenario() {
    let serve = "serve = \"conditions\"\n";
    let text = suite("", "query").replace(serve, &format!("{serve}speaks = \"nopayloaddb\"\n"));
    let text = text.replace("\"conditions\"\noperation", "\"nopayloaddb\"\noperation");
    let sizes = "folders = 3\nchannels = 4\nintervals = 5\nfields = 2\n";
    let text = text.replace(sizes, "scenario = \"tiny\"\n");
    assert_eq!(Place::with(&text).trials().len(), 4);
    let other = text.replace("\"tiny\"", "\"small\"");
    let said = "unknown word `small`";
    Place::with(&other).refuses(&["plan", "suite.toml"], 2, said);
}

/// A server without data.
fn served(place: &Place) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "conditions", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path().join("data")).stdin(Stdio::null());
    Served::spawn(command)
}

#[test]
fn what_is_empty_is_a_note_beside_the_results() {
    let place = Place::with("");
    let served = served(&place);
    let ask = |arguments: &[&str]| {
        let arguments = [&["conditions", "--server", served.address()], arguments].concat();
        let output = place.loadline(&arguments);
        (code(&output), stdout(&output), stderr(&output))
    };
    let noted = |arguments: &[&str], out: &str, note: &str| {
        let (code, stdout, stderr) = ask(arguments);
        assert_eq!((code, &stdout[..]), (0, out), "{arguments:?}: {stderr}");
        assert!(stderr.contains(note), "{arguments:?}: {stderr}");
    };
    noted(&["list"], "", "there is no folder below /");
    noted(&["tag", "list"], "", "there is no tag");
    noted(&["create", "/f"], "revision 1\n", "/f has no columns");
    let head = "channel  since  until\n";
    noted(&["get", "/f", "5"], head, "nothing is shown: folder=/f t=5");
    noted(&["browse", "/f", "--since", "7"], head, "folder=/f since=7 until=max");
    noted(&["diff", "/f", "--revision", "1"], "", "no difference: under=/f");
    let (code, _, stderr) = ask(&["get", "/f", "5", "--json"]);
    assert_eq!((code, &stderr[..]), (0, ""));
}

#[test]
fn a_server_that_runs_is_tried_with_what_it_has_and_nothing_is_written() {
    let place = Place::with("");
    let served = served(&place);
    let ask = |arguments: &[&str]| {
        let arguments = [&["conditions", "--server", served.address()], arguments].concat();
        let output = place.loadline(&arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let attempt = ["try", "--for", "100ms", "--wait", "--json", "conditions", served.address()];
    place.refuses(&attempt, 1, "shows nothing below /: insert something");
    ask(&["create", "/det/empty", "--column", "value=float"]);
    place.refuses(&attempt, 1, "shows nothing below /");
    ask(&["create", "/det/temperature", "--column", "value=float"]);
    for since in ["100", "200"] {
        ask(&["insert", "/det/temperature", "--channel", "3", "--since", since, "value=20.5"]);
    }
    let before = ask(&["list", "--json"]);
    let json = place.json(&attempt, &[0, 4]);
    for trial in json["trials"].as_array().expect("trials") {
        let [wrong, missing] = ["wrong", "missing"].map(|key| trial[key].as_u64());
        assert_eq!((wrong, missing), (Some(0), Some(0)), "{trial:#}");
        assert!(trial["operations"].as_u64().expect("a number") > 0, "{trial:#}");
    }
    assert_eq!(ask(&["list", "--json"]), before);
    assert!(ask(&["slice", "150"]).contains("time 100: 2 folders, 1 object"));
}

#[test]
fn data_that_are_written_to_are_not_reused() {
    let said = "what insert writes would be there in the next round";
    Place::with(&suite("", "insert")).refuses(&["plan", "suite.toml"], 2, said);
}

#[test]
fn a_target_is_measured_only_where_the_suite_says() {
    let other = "[[target]]\nname = \"other\"\nserve = \"conditions\"\n\
                 options = { data = \"{dir}/data\" }\nonly = { \"clients.connections\" = [1] }\n";
    let place = Place::with(&suite(other, "slice"));
    let plan = stdout(&place.loadline(&["plan", "suite.toml"]));
    assert_eq!(plan.matches("without other").count(), 1, "{plan}");
    let of = |name: &str| place.trials().iter().filter(|one| one["target"] == name).count();
    assert_eq!((of("loadline"), of("other")), (4, 2));
    let elsewhere = other.replace("clients.connections", "clients.conections");
    let said = "the suite says nothing at `clients.conections`";
    Place::with(&suite(&elsewhere, "slice")).refuses(&["plan", "suite.toml"], 2, said);
    let needs = other.replace("only = { \"clients.connections\" = [1] }", "needs = [\"/no/one\"]");
    let said = "/no/one is not installed";
    Place::with(&suite(&needs, "slice")).refuses(&["plan", "suite.toml"], 2, said);
}

#[test]
fn every_suite_of_the_service_can_be_planned() {
    let is_one = |name: &str| name.starts_with("conditions-") || name == "tour-conditions.toml";
    plans_every_suite(is_one, 12);
}

/// What PostgreSQL's backends do is the target's: each has a session of its own. SQLite answers
/// beside it.
#[cfg(all(feature = "postgres", feature = "sqlite"))]
#[test]
fn postgresql_answers_in_the_same_rounds_and_its_backends_are_seen() {
    if !std::path::Path::new("/usr/lib/postgresql/15/bin/postgres").exists() {
        testing::skip("postgresql is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let repository = crate::common::repository();
    let script = repository.join("peers/postgres/serve.sh").display().to_string();
    let names = ["postgres-gist", "postgres-lateral", "postgres-vector", "postgres-naive"];
    let target = |name: &&str| {
        format!(
            "[[target]]\nname = \"{name}\"\nspeaks = \"{name}\"\ndata = \"reuse\"\n\
             ready_within = \"60s\"\ncommand = \
             [\"sh\", \"{script}\", \"{{data}}\", \"{{port}}\", \"fsync=off\", \
             \"wal_level=minimal\", \"max_wal_senders=0\", \"shared_buffers=64MB\"]\n"
        )
    };
    let lend = repository.join("peers/sqlite/lend.py").display().to_string();
    let sqlite = format!(
        "[[target]]\nname = \"sqlite\"\nspeaks = \"sqlite\"\ndata = \"reuse\"\noptional = true\n\
         command = [\"python3\", \"{lend}\", \"{{data}}\", \"{{port}}\"]\n"
    );
    let targets: String = names.iter().map(target).chain([sqlite]).collect();
    let trials = Place::with(&suite(&targets, "read-folders")).trials();
    let is_postgres =
        |trial: &&serde_json::Value| names.iter().any(|name| trial["target"] == *name);
    assert_eq!(trials.iter().filter(is_postgres).count(), 4 * 4);
    for trial in trials.iter().filter(is_postgres) {
        // The process that was started only waits.
        let cpu_ns = trial["server"]["cpu_ns_per_op"].as_f64().expect("CPU time");
        assert!(cpu_ns > 1_000.0, "{trial:#}");
        let bytes = trial["server"]["rss_bytes"].as_f64().expect("memory");
        assert!(bytes > 1e6, "{trial:#}");
    }
}

#[test]
fn a_server_of_shared_data_says_what_is_missing_and_no_password() {
    let place = Place::with("");
    let mut serve = vec!["serve", "conditions", "--data", "copies", "--listen", "127.0.0.1:0"];
    serve.extend(["--metadata", "postgres://me:geheim@host:port/conditions"]);
    let output = place.loadline(&serve);
    assert!(stderr(&output).contains("--segments"), "{}", stderr(&output));
    serve.extend(["--segments", "s3://bucket/conditions"]);
    let output = place.loadline(&serve);
    let (meant, why) = match cfg!(feature = "tier") {
        true => (1, "--metadata: it is no address of PostgreSQL"),
        false => (2, "build it with `cargo build --release --features tier`"),
    };
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    assert_eq!(code(&output), meant);
    assert!(!stderr(&output).contains("geheim"), "{}", stderr(&output));
}
