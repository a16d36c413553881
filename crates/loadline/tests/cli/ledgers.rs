//! `loadline ledger`, from outside: list, merge, prune, export.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::{Place, code, stderr, stdout};
use ledger::{
    DataState, FingerprintRow, Histogram, HistogramKind, HistogramRow, Ledger, PointRow, RoundRow,
    RunRow, RunState, SuiteRow, TargetRow, TrialRow, Validity,
};

/// Where it is looked for.
const LEDGER: &str = ".loadline/ledger.sqlite";

/// Writes a ledger with runs that started at these times.
pub(crate) fn with_runs(path: &Path, started: &[&str]) -> PathBuf {
    let mut ledger = Ledger::open(path).expect("a ledger");
    for started_at in started {
        add_run(&mut ledger, started_at).expect("a run");
    }
    path.to_owned()
}

fn add_run(ledger: &mut Ledger, started_at: &str) -> Result<(), ledger::LedgerError> {
    let suite = SuiteRow {
        hash: "5u17e".into(),
        path: "suite.toml".into(),
        title: "A title, with a comma".into(),
        claims: vec![],
        compromises: vec![],
        text: String::new(),
    };
    let fingerprint = FingerprintRow { hash: "f".into(), json: serde_json::Map::new() };
    let suite_id = ledger.add_suite(&suite)?;
    let fingerprint_id = ledger.add_fingerprint(&fingerprint)?;
    let run_id = ledger.add_run(&RunRow {
        suite_id,
        fingerprint_id,
        command: "loadline run suite.toml".into(),
        version: "0.1.0".into(),
        seed: 1,
        started_at: started_at.into(),
        ended_at: None,
        state: RunState::Running,
        note: None,
        settings: vec![],
        primary_metric: "rate_per_s".into(),
        same_within: 0.02,
        confidence: 0.95,
    })?;
    let (name, description) = ("ours".to_owned(), String::new());
    let target = TargetRow { run_id, ordinal: 0, name, description, skipped: None };
    let target = ledger.add_target(&target)?;
    let (label, keys) = ("cache/get".to_owned(), serde_json::Map::new());
    let point_id = ledger.add_point(&PointRow { run_id, ordinal: 0, label, keys })?;
    let round = RoundRow { run_id, point_id, ordinal: 1, seed: 1, started_ns: 0 };
    let round = ledger.add_round(&round)?;
    let trial = ledger.add_trial(&TrialRow {
        validity: Validity::Valid,
        reason: None,
        measured_ns: 1_000_000_000,
        rate_ns: 1_000_000_000,
        operations: 500,
        ..TrialRow::unfinished(round, target, DataState::Warm, 0)
    })?;
    let histogram = Histogram::<u64>::new(3).expect("a histogram");
    let kind = HistogramKind::Latency;
    ledger.add_histogram(&HistogramRow::of(trial, "", "", kind, None, &histogram)?)?;
    ledger.add_figure(trial, "rate_per_s", 500.0)?;
    ledger.finish_run(run_id, RunState::Finished, started_at, None)
}

pub(crate) fn place() -> Place {
    let place = Place::with("");
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    place
}

fn json_of(place: &Place, arguments: &[&str]) -> serde_json::Value {
    let output = place.loadline(arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn ids_of(list: &serde_json::Value) -> Vec<i64> {
    let runs = list["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["run"].as_i64().expect("an id")).collect()
}

#[test]
fn runs_of_another_ledger_are_merged_once_and_only_from_ledgers() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    let other = with_runs(&place.path().join("b.sqlite"), &["2026-01-02T00:00:00Z"; 2]);
    let other = other.to_str().expect("UTF-8");
    let merged = json_of(&place, &["ledger", "merge", other, "--json"]);
    let taken = serde_json::json!([{"run": 2, "there": 1}, {"run": 3, "there": 2}]);
    assert_eq!(merged["files"][0]["taken"], taken);
    let again = place.loadline(&["ledger", "merge", other]);
    assert!(stdout(&again).contains("0 runs taken\n  2 runs here already"), "{}", stdout(&again));
    let list = json_of(&place, &["ledger", "list", "--json"]);
    assert_eq!(ids_of(&list), [1, 2, 3]);

    let own = place.ledger();
    let output = place.loadline(&["ledger", "merge", own.to_str().expect("UTF-8")]);
    assert_eq!(code(&output), 2);
    let missing = place.loadline(&["ledger", "merge", "none.sqlite"]);
    assert_eq!(code(&missing), 2);
    assert!(stderr(&missing).contains("there is no ledger at none.sqlite"));
    let suite = place.loadline(&["ledger", "merge", "suite.toml"]);
    assert_eq!(code(&suite), 2, "a suite is no ledger");
}

#[test]
fn a_ledger_without_runs_is_listed_in_words() {
    let place = place();
    with_runs(&place.ledger(), &[]);
    let list = place.loadline(&["ledger", "list"]);
    assert_eq!((code(&list), stdout(&list)), (0, String::new()));
    assert!(stderr(&list).ends_with("ledger.sqlite has no runs\n"), "{}", stderr(&list));
    let list = json_of(&place, &["ledger", "list", "--json"]);
    assert_eq!(list, serde_json::json!({ "schema": 1, "runs": [] }));
}

#[test]
fn old_runs_are_pruned_by_number_or_age_and_their_logs_with_them() {
    let place = place();
    // Merged runs have later ids than their time: run 3 is the oldest.
    let now = jiff::Timestamp::now().to_string();
    let started = ["2002-01-02T00:00:00Z", &now, "2001-01-01T00:00:00Z"];
    with_runs(&place.ledger(), &started);
    let logs = |run: u8| place.path().join(format!(".loadline/runs/{run}"));
    for run in 1..=3 {
        std::fs::create_dir_all(logs(run)).expect("a folder");
        std::fs::write(logs(run).join("ours.log"), [b'x'; 2048]).expect("a log");
    }
    let output = place.loadline(&["ledger", "prune", "--keep", "2", "--dry-run"]);
    let said = stdout(&output);
    assert!(said.starts_with("would delete run 3  2001-01-01T00:00:00Z"), "{said}");
    assert!(said.ends_with("1 would be deleted, 2 kept\n"), "{said}");
    assert_eq!(ids_of(&json_of(&place, &["ledger", "list", "--json"])), [1, 2, 3]);

    let pruned = json_of(&place, &["ledger", "prune", "--keep", "2", "--json"]);
    assert_eq!((&pruned["deleted"], &pruned["kept"]), (&serde_json::json!([3]), &2.into()));
    assert!(pruned["freed_bytes"].as_u64().expect("a size") >= 2048);
    assert!(!logs(3).exists() && logs(1).exists());

    let output = place.loadline(&["ledger", "prune", "--older-than", "7d"]);
    assert!(stdout(&output).contains("1 deleted, 1 kept, "), "{}", stdout(&output));
    for wrong in [&["--older-than", "soon"][..], &[], &["--keep", "1", "--older-than", "1d"]] {
        let arguments = [&["ledger", "prune"], wrong].concat();
        assert_eq!(code(&place.loadline(&arguments)), 2, "{wrong:?}");
    }
}

#[test]
fn a_ledger_into_which_a_run_is_measured_is_not_pruned() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    set_running(&place.ledger()).expect("the last run runs, in this very process");
    let output = place.loadline(&["ledger", "prune", "--keep", "0"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("run 2 is being measured"), "{}", stderr(&output));
}

/// The writer of the runs is this process, so a run that says `running` runs.
fn set_running(path: &Path) -> Result<(), ledger::LedgerError> {
    let mut ledger = Ledger::open(path)?;
    let run = ledger.last_run()?.expect("a run");
    ledger.finish_run(run, RunState::Running, "2026-01-02T00:00:00Z", None)
}

#[test]
fn tables_are_exported_to_standard_output_or_a_folder() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    let csv = place.loadline(&["ledger", "export", "last", "--format", "csv", "--table", "trials"]);
    let text = stdout(&csv);
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|names| names.starts_with("run_id,suite,point_id,point,")));
    assert!(lines.next().is_some_and(|row| row.starts_with("1,\"A title, with a comma\",1,")));
    assert_eq!(lines.next(), None);

    let json = json_of(
        &place,
        &["ledger", "export", "1", "--format", "jsonl", "--table", "trials", "--out", "-"],
    );
    assert_eq!((&json["rate_per_s"], &json["reason"]), (&500.0.into(), &serde_json::Value::Null));

    let all = place.loadline(&["ledger", "export", "1", "--format", "jsonl", "--out", "out"]);
    assert_eq!(code(&all), 0, "{}", stderr(&all));
    for name in ["trials", "latency", "slices", "sensors", "samples", "cool_test"] {
        assert!(place.path().join(format!("out/{name}.jsonl")).exists(), "{name}");
    }
    let refused = |arguments: &[&str]| {
        let output = place.loadline(&[&["ledger", "export"], arguments].concat());
        (code(&output), stderr(&output))
    };
    let (code, said) = refused(&["1", "--format", "csv"]);
    assert_eq!(code, 2);
    assert!(said.contains("name it with --table"), "{said}");
    let (code, said) = refused(&["1", "--format", "csv", "--table", "trails"]);
    assert_eq!(code, 2);
    assert!(said.contains("there are trials, latency"), "{said}");
    let (code, said) = refused(&["9", "--format", "csv", "--table", "trials"]);
    assert_eq!(code, 2);
    assert!(said.contains("no run 9"), "{said}");
}

#[test]
fn a_ledger_of_a_schema_before_any_release_is_refused_with_what_to_do() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-02T03:04:05Z"]);
    let by_hand = rusqlite::Connection::open(place.ledger()).expect("a file");
    by_hand.pragma_update(None, "user_version", 15).expect("an older version");
    drop(by_hand);
    let before = std::fs::read(place.ledger()).expect("the ledger");
    for arguments in [
        &["ledger", "list"][..],
        &["report", "last"],
        &["history"],
        &["ledger", "export", "last", "--format", "csv", "--table", "trials"],
        &["ledger", "prune", "--keep", "0"],
        &["ledger", "merge", ".loadline/ledger.sqlite", "--ledger", "new.sqlite"],
        &["ui", "--listen", "127.0.0.1:0"],
    ] {
        let output = place.loadline(arguments);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", stderr(&output));
        for words in ["has schema 15", "the loadline of commit", "--ledger"] {
            assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        }
    }
    assert_eq!(std::fs::read(place.ledger()).expect("the ledger"), before);
    assert!(!place.path().join("new.sqlite").exists(), "nothing is made for a merge that fails");
}

#[test]
#[cfg(not(feature = "parquet"))]
fn what_is_not_built_in_is_named_with_its_feature() {
    let place = place();
    with_runs(&place.ledger(), &["2026-01-02T03:04:05Z"]);
    let refused = place.loadline(&["ledger", "export", "last", "--format", "parquet"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("--features parquet"), "{}", stderr(&refused));
}

#[test]
fn a_ledger_that_is_made_where_every_file_may_be_written_by_all_is_taken_again() {
    let place = Place::with("");
    let exe = env!("CARGO_BIN_EXE_loadline");
    let script = format!("umask 0; exec {exe} try --wait --for 100ms --ledger {LEDGER} -- true");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(place.path());
    shell.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
    let tried = shell.output().expect("sh runs");
    assert!([0, 4].contains(&code(&tried)), "{}", stderr(&tried));
    let list = place.command(&["ledger", "list"]).output().expect("it runs");
    assert_eq!(code(&list), 0, "{}", stderr(&list));
}

#[test]
fn a_ledger_that_another_user_may_have_written_is_taken_only_by_its_name() {
    let place = place();
    let ledger = with_runs(&place.ledger(), &["2026-01-01T00:00:00Z"]);
    let folder = place.path().join(".loadline");
    let refused = |said: &str| {
        for arguments in [["rerun", "last"], ["ledger", "list"]] {
            place.refuses(&arguments, 2, said);
        }
        place.refuses(&["rerun", "last"], 2, &format!("--ledger {}", ledger.display()));
        let named = place.loadline(&["ledger", "list", "--ledger", LEDGER]);
        assert_eq!(code(&named), 0, "{}", stderr(&named));
    };
    for (path, mode) in [(&folder, 0o755), (&ledger, 0o644)] {
        let set = |mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
        };
        set(mode | 0o002);
        refused("may be written by every user");
        set(mode);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path, Some(65_534), None).expect("an owner");
            refused("belongs to another user (uid 65534)");
            std::os::unix::fs::chown(path, Some(0), None).expect("an owner");
        }
    }
    assert_eq!(code(&place.loadline(&["ledger", "list"])), 0);
}
