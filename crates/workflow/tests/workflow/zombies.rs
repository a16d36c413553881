//! Zombies, and what ecFlow refuses: the same commands on both servers, with equal answers and
//! lines of the log.

use std::process::{Command, Stdio};

use testing::program;

use crate::edited::said;
use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
suite s
  edit ECF_KILL_CMD 'touch %ECF_HOME%/killed.%ECF_RID%'
  edit ECF_JOB_CMD 'true'
  repeat date D 20240228 20240301
  family f
    repeat enumerated E 'x' 'y' 'z'
    task a
      event e
      meter m 0 100 90
      label l ''
    task b
      event e
      zombie ecf_passwd:fob::
    task c
      event e
      zombie ecf_passwd:fail:event:
    task e
      edit ECF_JOB_CMD ''
    task g
      edit ECF_JOB_CMD 'pwd > %ECF_HOME%/cwd'
    task d
      trigger 1 == 0
      repeat integer I 3 9 2
  endfamily
endsuite
";

/// The environment of a job.
fn job<'a>(path: &'a str, password: &'a str, rid: &'a str) -> [(&'a str, &'a str); 4] {
    [("ECF_NAME", path), ("ECF_PASS", password), ("ECF_RID", rid), ("ECF_TRYNO", "1")]
}

/// The log's lines of zombies, each once however often a client has asked.
fn lines(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.home()).expect("home").flatten();
    let mut log = files.filter(|one| one.file_name().to_string_lossy().ends_with("ecf.log"));
    let log = log.next().and_then(|one| std::fs::read_to_string(one.path()).ok());
    let mut all: Vec<String> = Vec::new();
    for line in log.unwrap_or_default().lines().filter(|line| line.contains(" zombie(")) {
        let line = line.split_once("] ").map_or(line, |(_, line)| line);
        // The password of the task is another at each server.
        let mut parts = line.split("passwd != [ task:");
        let before = parts.next().unwrap_or_default().to_owned();
        let behind = parts.next().and_then(|rest| rest.split_once(' ')).map(|(_, rest)| rest);
        let line = before + behind.unwrap_or_default();
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// Has a job report, and waits until the log has it; the client may be made to wait.
fn called(place: &Place, job: &[(&str, &str)], words: &[&str]) -> String {
    let before = lines(place);
    let mut client = Command::new("ecflow_client");
    client.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    client.env("ECF_HOST", "localhost").env("ECF_PORT", place.port.to_string());
    let mut child = client.envs(job.iter().copied()).spawn().expect("the client starts");
    place.until(&format!("{words:?} is in the log"), || lines(place) != before);
    let line = lines(place).last().cloned().expect("one more");
    let ended = if line.contains("action(automatic-block)") || line.contains("-remove)") {
        child.kill().expect("runs");
        child.wait().expect("ended");
        "waits".to_owned()
    } else {
        child.wait().expect("ended").success().to_string()
    };
    format!("{words:?} {ended} {line}")
}

/// What the commands say and leave.
fn run(place: &Place) -> Vec<String> {
    let definition = place.write("s.def", SUITE).display().to_string();
    for task in ["a", "b", "c", "d", "e", "g"] {
        place.write(&format!("home/s/f/{task}.ecf"), "true\n");
    }
    place.told(&[&format!("--load={definition}")]);
    let mut all = Vec::new();
    for (path, kind) in [("/s", "D"), ("/s/f", "E"), ("/s/f/d", "I")] {
        let values: &[&str] = match kind {
            "D" => &["20240228", "20240229", "20240301"],
            "E" => &["x", "y", "z"],
            _ => &["3", "5", "9"],
        };
        for value in values {
            place.told(&["--alter=change", "repeat", value, path]);
            all.extend(["next", "prev"].map(|to| said(place, &["--query", "repeat", path, to])));
        }
        all.push(said(place, &["--query", "repeat", path, "other"]));
    }
    place.told(&["--begin=s"]);
    place.told(&["--restart"]);
    for task in ["a", "b", "c"] {
        place.until_state(&format!("/s/f/{task}"), "submitted");
        place.told(&["--alter=add", "variable", "ECF_PASS", "FREE", &format!("/s/f/{task}")]);
        let path = format!("/s/f/{task}");
        let output = place.client_of(&["--init=77"], &job(&path, "any", "77"));
        assert!(output.status.success(), "{output:?}");
        place.told(&["--alter=delete", "variable", "ECF_PASS", &path]);
    }
    place.until_state("/s/f/e", "aborted");
    let folder = || std::fs::read_to_string(place.home().join("cwd")).unwrap_or_default();
    place.until("a job runs in ECF_HOME", || !folder().is_empty());
    all.push(folder().replace(&place.home().display().to_string(), "HOME"));
    let (bad, gone) = (job("/s/f/a", "bad", "77"), job("/s/gone/a", "bad", "78"));
    all.push(called(place, &bad, &["--event=e"]));
    all.push(called(place, &bad, &["--meter=m", "5"]));
    all.push(called(place, &bad, &["--label=l", "x"]));
    all.push(called(place, &bad, &["--complete"]));
    all.push(called(place, &gone, &["--event=e"]));
    all.push(called(place, &gone, &["--init=78"]));
    all.push(called(place, &job("/s/f/b", "bad", "77"), &["--event=e"]));
    all.push(called(place, &job("/s/f/c", "bad", "77"), &["--event=e"]));
    all.push(called(place, &job("/s/f/c", "bad", "77"), &["--complete"]));
    for (words, path) in [
        ("--zombie_adopt", "/s/gone/a"),
        ("--zombie_block", "/s/gone/a"),
        ("--zombie_kill", "/s/gone/a"),
        ("--zombie_fob", "/s/gone/a"),
        ("--zombie_fail", "/s/f/d"),
        ("--zombie_kill", "/s/f/d"),
        ("--zombie_adopt", "/s/f/a"),
    ] {
        all.push(said(place, &[words, path]));
    }
    // It is the task's own from here on.
    let output = place.client_of(&["--event=e"], &bad);
    all.push(format!("adopted {} {}", output.status.success(), state(place, "/s/f/a:e")));
    all.push(said(place, &["--zombie_kill", "/s/f/c"]));
    place.until("the job of this process is killed", || place.home().join("killed.77").exists());
    all.extend(ended_after_all(place).map(|one| one.to_string()));
    all.extend(of_missing_nodes(place));
    let waits = place.client_of(&["--wait=/s/no == complete"], &bad);
    let why = String::from_utf8_lossy(&waits.stderr).into_owned();
    let why = why.lines().find(|line| line.contains("referenced")).unwrap_or_default().to_owned();
    all.push(format!("--wait {} {why}", waits.status.success()));
    all
}

/// What commands say of nodes that aren't there, and what is remembered of one that is.
fn of_missing_nodes(place: &Place) -> Vec<String> {
    let mut all = Vec::new();
    for words in [
        &["--status=/s/f/d"][..],
        &["--suspend=/s/no", "/s/nowhere"],
        &["--order=/s/nowhere", "top"],
        &["--query", "state", "/s/nowhere"],
        &["--query", "trigger", "/s/f/a", "/s/no == complete"],
    ] {
        all.push(said(place, words));
    }
    place.told(&["--order=/s/f/e", "top"]);
    let history = place.told(&["--edit_history", "/s/f/e"]);
    all.extend(
        history.lines().last().and_then(|line| line.split_once("] ")).map(|one| one.1.to_owned()),
    );
    all
}

/// A job that a user has taken for ended, and that ends after all, is no zombie any more.
fn ended_after_all(place: &Place) -> [bool; 3] {
    let is_zombie = || place.told(&["--zombie_get"]).contains("/s/f/b");
    place.told(&["--force=complete", "/s/f/b"]);
    let before = is_zombie();
    let output = place.client_of(&["--complete"], &job("/s/f/b", "any", "77"));
    [before, output.status.success(), is_zombie()]
}

fn state(place: &Place, event: &str) -> String {
    place.told(&["--query", "event", event]).trim().to_owned()
}

#[test]
fn zombies_and_refusals_are_ecflows() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let _ours = Served::ours(&own);
    let _theirs = Served::theirs(&other);
    crate::edited::assert_same(&run(&own), &run(&other));
}

/// Neither its identifier nor its reason: the tree, and what comes back after a restart, is what
/// was loaded.
#[test]
fn what_a_job_says_becomes_no_other_node_or_state() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let file = place.write(
        "s.def",
        "suite s\n  edit ECF_JOB_CMD true\n  edit ECF_TRIES 1\n  task a\n  task b\nendsuite\n",
    );
    for task in ["a", "b"] {
        place.write(&format!("home/s/{task}.ecf"), "true\n");
    }
    let mut served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--alter=add", "variable", "ECF_PASS", "FREE", "/s/a", "/s/b"]);
    place.told(&["--begin=s"]);
    place.told(&["--restart"]);
    let states = || ["/s/a", "/s/b"].map(|path| place.told(&["--query", "state", path]));
    for path in ["/s/a", "/s/b"] {
        place.until_state(path, "submitted");
    }
    let rid = "1\n endsuite abort<: x\nsuite evil # try:7";
    let output = place.client_of(&[&format!("--init={rid}")], &job("/s/a", "any", rid));
    assert!(output.status.success(), "{output:?}");
    let own = job("/s/b", "any", "2");
    assert!(place.client_of(&["--init=2"], &own).status.success());
    let reason = "--abort=x>abort suspended";
    assert!(place.client_of(&[reason], &own).status.success());
    let before = (states(), place.told(&["--suites"]));
    assert_eq!(before.0.clone().map(|word| word.trim().to_owned()), ["active", "aborted"]);
    // Once from the checkpoint, in which both stand, and once from what came since.
    for _ in 0..2 {
        place.told(&["--check_pt"]);
        served.kill();
        served = Served::ours(&place);
        assert_eq!((states(), place.told(&["--suites"])), before);
    }
    let tree = place.told(&["--get_state"]);
    assert!(tree.contains(" rid:1__endsuite_abort_:_x_suite_evil___try:7 "), "{tree}");
    served.kill();
}

/// Neither that of a task's job, nor that of a zombie.
#[test]
fn no_shell_reads_what_a_job_calls_its_process() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let kill = "  edit ECF_KILL_CMD 'touch %ECF_HOME%/killed.%ECF_RID%'\n";
    let definition = format!(
        "suite s\n  edit ECF_JOB_CMD true\n{kill}  task a\n  task b\n    edit ECF_KILL_CMD 'touch \
         %ECF_HOME%/any'\nendsuite\n"
    );
    let file = place.write("s.def", &definition);
    for task in ["a", "b"] {
        place.write(&format!("home/s/{task}.ecf"), "true\n");
    }
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--alter=add", "variable", "ECF_PASS", "FREE", "/s/a", "/s/b"]);
    place.told(&["--begin=s"]);
    place.told(&["--restart"]);
    let rid = "9;touch${IFS}forged;";
    for path in ["/s/a", "/s/b"] {
        place.until_state(path, "submitted");
        let output = place.client_of(&[&format!("--init={rid}")], &job(path, "any", rid));
        assert!(output.status.success(), "{output:?}");
        place.told(&[&format!("--kill={path}")]);
    }
    place.until("a command that doesn't name it is run", || place.home().join("any").exists());
    let log = || place.told(&["--log=get"]);
    place.until("the log says why", || log().contains("ECF_KILL_CMD of /s/a is not run"));
    let files = std::fs::read_dir(place.home()).expect("home").flatten();
    let names: Vec<_> = files.map(|one| one.file_name()).collect();
    let is_made = |name: &std::ffi::OsString| {
        ["killed", "forged"].iter().any(|part| name.to_string_lossy().contains(part))
    };
    assert!(!names.iter().any(is_made), "{names:?}");
    assert!(!log().contains("ECF_KILL_CMD of /s/b is not run"));
    served.kill();
}
