//! `--edit_script`: scripts shown, jobs and aliases made of what a user has edited, as ecFlow's
//! server does it.

use testing::program;

use crate::jobs::normalised;
use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
suite s
  edit ECF_TRIES '1'
  edit V 'value'
  edit FAM 'fam %V%'
  limit l 1
  family f
    task a
      inlimit /s:l
      event e
      event 1 n set
      meter m 0 100 90
      label lab \"before\"
      trigger 1 == 0
    task bad
      trigger 1 == 0
    task missing
      trigger 1 == 0
    task none
      trigger 1 == 0
  endfamily
endsuite
";

/// Scripts beside the jobs: ecFlow makes no folder for a user's copy of a script.
fn scripts(place: &Place) {
    let body = "%nopp\necho 100%\n%end\n\
                echo %V% %NO:def% %NO:other% %FAM% %TASK% %ESUITE:x% > %ECF_HOME%/out.%ECF_TRYNO%\n\
                ecflow_client --event=e";
    place.script("s/f/a", body);
    place.script("s/f/bad", "echo %NOPE%");
    place.write("home/s/f/none.ecf", "echo plain\n");
}

/// What a command says.
pub(crate) fn said(place: &Place, words: &[&str]) -> String {
    let output = place.client(words);
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let all = format!("{words:?} {}\n{out}{error}", output.status.success());
    alike(place, &all)
}

/// A text without what is another in each place and at each try.
fn alike(place: &Place, text: &str) -> String {
    let home = place.home().display().to_string();
    let text = text.replace(&home, "HOME").replace(&place.port.to_string(), "PORT");
    let lines = text.lines().map(|line| line.split("ECF_PASS=").next().unwrap_or_default());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// What the commands say and leave.
fn run(place: &Place) -> Vec<String> {
    scripts(place);
    let file = place.write("s.def", SUITE);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    let mut all = shown(place);
    let edited = place.told(&["--edit_script", "/s/f/a", "edit"]);
    let edited =
        edited.replace("\nV = value", "\nV = changed").replace("NO:def = def", "NO:def = ");
    let edited = edited.trim_end().to_owned() + "\n";
    let file = place.write("home/edited", &edited).display().to_string();
    all.extend(submitted(place, &file, &edited));
    all.extend(with_aliases(place, &file));
    all.extend(refused(place, &file));
    all.extend(afterwards(place, &file));
    let history = place.told(&["--edit_history", "/s/f/a"]);
    all.push(history.lines().map(|line| line.split_at(27).1.to_owned() + "\n").collect());
    all
}

/// A file of the server, as it is in each place.
fn read(place: &Place, name: &str) -> String {
    alike(place, &std::fs::read_to_string(place.home().join(name)).expect("a file"))
}

fn told(place: &Place, path: &str, words: &[&str]) -> String {
    said(place, &[&["--edit_script", path], words].concat())
}

fn tree(place: &Place) -> String {
    normalised(place, &place.told(&["--get_state"]))
}

fn shown(place: &Place) -> Vec<String> {
    let all = [
        ("/s/f/a", "edit"),
        ("/s/f/a", "pre_process"),
        ("/s/f/none", "edit"),
        ("/s/f/bad", "edit"),
        ("/s/f/bad", "pre_process"),
        ("/s/f/missing", "edit"),
        ("/s/f", "edit"),
        ("/s/f/nope", "edit"),
    ];
    all.map(|(path, what)| told(place, path, &[what])).to_vec()
}

fn submitted(place: &Place, file: &str, edited: &str) -> Vec<String> {
    let mut all = vec![told(place, "/s/f/a", &["submit", file])];
    place.until_state("/s/f/a", "complete");
    all.push(told(place, "/s/f/a", &["pre_process_file", file]));
    all.extend([read(place, "s/f/a.usr"), read(place, "out.1")]);
    place.write("home/edited", &edited.replace("echo %V%", "echo own %V%"));
    all.push(told(place, "/s/f/a", &["submit_file", file]));
    place.until("it runs again", || place.home().join("out.2").exists());
    place.until_state("/s/f/a", "complete");
    all.push(read(place, "out.2"));
    all
}

fn with_aliases(place: &Place, file: &str) -> Vec<String> {
    let mut all = vec![told(place, "/s/f/a", &["submit_file", file, "create_alias", "no_run"])];
    all.push(normalised(place, &place.told(&["--migrate"])));
    all.push(told(place, "/s/f/a", &["submit_file", file, "create_alias"]));
    place.until_state("/s/f/a/alias1", "complete");
    all.extend([read(place, "s/f/a/alias0.usr"), tree(place)]);
    all.push(told(place, "/s/f/a/alias0", &["edit"]));
    all.push(told(place, "/s/f/a/alias0", &["submit_file", file, "create_alias"]));
    place.until_state("/s/f/a/alias0", "complete");
    all.push(said(place, &["--run", "/s/f/a/alias0"]));
    place.until_state("/s/f/a/alias0", "complete");
    all
}

fn refused(place: &Place, file: &str) -> Vec<String> {
    let empty = place.write("home/empty", "").display().to_string();
    let bad = place.home().join("s/f/bad.ecf").display().to_string();
    let all = [
        ("/s/f/missing", ["submit", file, "no_run"]),
        ("/s/f/bad", ["submit_file", &bad, "x"]),
        ("/s/f/bad", ["submit", &bad, "x"]),
        ("/s/f/bad", ["submit_file", &bad, "create_alias"]),
        ("/s/f/a", ["submit_file", &empty, "create_alias"]),
    ];
    let mut all = all.map(|(path, words)| told(place, path, &words)).to_vec();
    all.push(tree(place));
    all
}

fn afterwards(place: &Place, file: &str) -> Vec<String> {
    let all = [
        &["--file", "/s/f/a/alias0", "script"][..],
        &["--requeue=force", "/s/f/a"],
        &["--delete", "yes", "/s/f/a/alias0"],
        &["--delete", "yes", "/s/f/a/alias1"],
        &["--requeue=force", "/s/f/a"],
        &["--edit_script", "/s/f/a", "submit_file", file, "create_alias", "no_run"],
        &["--delete=force", "yes", "/s/f/bad"],
    ];
    all.into_iter().flat_map(|words| [said(place, words), tree(place)]).collect()
}

/// All that differs, shown in one failure.
pub(crate) fn assert_same(ours: &[String], theirs: &[String]) {
    let differ = ours.iter().zip(theirs).enumerate().filter(|(_, (ours, theirs))| ours != theirs);
    let shown = differ.map(|(place, (a, b))| format!("{place} ours:\n{a}\n{place} theirs:\n{b}\n"));
    let shown: String = shown.collect();
    assert!(shown.is_empty() && ours.len() == theirs.len(), "{shown}");
}

/// Has the same told of this server, once more after a start from its journal, and of ecFlow's.
pub(crate) fn is_as_with_ecflow(run: fn(&Place) -> Vec<String>) {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    let last = normalised(&own, &own.told(&["--migrate"]));
    served.kill();
    // What the journal has makes the same again.
    let served = Served::ours(&own);
    assert_eq!(last, normalised(&own, &own.told(&["--migrate"])));
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    assert_same(&ours, &theirs);
}

#[test]
fn scripts_are_shown_edited_and_run_as_with_ecflow() {
    is_as_with_ecflow(run);
}

#[test]
fn what_a_user_has_edited_is_run_after_a_crash_if_it_was_not_started_before() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    // The server runs eight at once.
    let names: Vec<String> = (0..8).map(|task| format!("t{task}")).collect();
    for name in &names {
        let wait = "until test -e %ECF_HOME%/go; do sleep 0.05; done";
        place.script(name, &format!("echo run >> %ECF_HOME%/ran.%TASK%\n{wait}"));
    }
    place.script("x", "echo unedited > %ECF_HOME%/x");
    let lines: String = names.iter().map(|name| format!("task {name}\n")).collect();
    let text = format!("suite s\nedit ECF_FILES '%ECF_HOME%'\n{lines}task x\ntrigger 1 == 0\n");
    let file = place.write("s.def", &text);
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    let runs = |name: &String| place.home().join(format!("ran.{name}")).exists();
    place.until("eight run", || names.iter().all(runs));
    let own = "%comment\nV = it's \\n\n%end\n%include <head.h>\n\
               cat > %ECF_JOB%.ran <<'END'\n%V% %TASK%\nEND\n%include <tail.h>\n";
    let file = place.write("own", own).display().to_string();
    place.told(&["--edit_script", "/s/x", "submit_file", &file]);
    place.told(&["--edit_script", "/s/x", "submit_file", &file, "create_alias"]);
    served.kill();
    place.write("home/go", "");
    let served = Served::ours(&place);
    for path in ["/s/x", "/s/x/alias0"] {
        place.until_state(path, "complete");
        let job = place.home().join(format!("{}.job1.ran", &path[1..]));
        assert_eq!(std::fs::read_to_string(job).expect("run"), "it's \\n x\n");
    }
    assert!(!place.home().join("x").exists());
    served.kill();
}

#[test]
fn jobs_that_take_longer_to_make_than_is_meant_are_submitted_all_the_same() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    scripts(&place);
    let file = place.write("s.def", SUITE);
    // Every job takes longer than none.
    let _served = Served::by_command(&place, &[], &[("ECF_TASK_THRESHOLD", "0")]);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    let edited = place.told(&["--edit_script", "/s/f/a", "edit"]);
    let file = place.write("home/edited", &edited).display().to_string();
    for how in ["submit", "submit_file"] {
        place.told(&["--edit_script", "/s/f/a", how, &file]);
        place.until_state("/s/f/a", "complete");
    }
    place.told(&["--edit_script", "/s/f/a", "submit_file", &file, "create_alias"]);
    place.until_state("/s/f/a/alias0", "complete");
    for path in ["/s/f/a", "/s/f/a/alias0"] {
        let state = place.told(&[&format!("--get_state={path}")]);
        assert!(state.contains("threshold"), "{state}");
    }
    // What can't be made is still said.
    let file = place.home().join("s/f/bad.ecf").display().to_string();
    let told = said(&place, &["--edit_script", "/s/f/bad", "submit_file", &file]);
    assert!(told.contains(" false\n") && told.contains("NOPE"), "{told}");
}

#[test]
fn commands_that_print_scripts_and_hang_hold_up_no_other_jobs_and_answers() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let pipe = place.home().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let hanging: String = (0..10).map(|at| format!("  task t{at}\n")).collect();
    let command = "echo begun >> %ECF_HOME%/begun; timeout 300 cat %ECF_HOME%/pipe";
    let suite = format!(
        "suite s\n family hanging\n  edit ECF_SCRIPT_CMD '{command}'\n{hanging} \
         endfamily\n task plain\nendsuite\n"
    );
    let file = place.write("s.def", &suite);
    place.script("plain", "true");
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    let begun = || {
        let text = std::fs::read_to_string(place.home().join("begun"));
        text.map_or(0, |text| text.lines().count())
    };
    place.until("all of them hang", || begun() == 10);
    place.until_state("/s/plain", "complete");
    assert_eq!(place.told(&["--query", "state", "/s/hanging/t9"]).trim(), "submitted");
    std::thread::scope(|scope| {
        for at in 0..3 {
            let path = format!("/s/hanging/t{at}");
            let place = &place;
            scope.spawn(move || place.client(&["--edit_script", &path, "edit"]));
        }
        place.until("those of answers hang, too", || begun() == 13);
        let text = place.told(&["--edit_script", "/s/plain", "edit"]);
        assert!(text.contains("%include <head.h>"), "{text}");
        // All commands come to an end, whether they have opened the pipe or not.
        let open = std::fs::OpenOptions::new().read(true).write(true).open(&pipe);
        std::fs::remove_file(&pipe).expect("removed");
        std::fs::write(&pipe, "").expect("written");
        drop(open.expect("the pipe"));
    });
    served.kill();
}
