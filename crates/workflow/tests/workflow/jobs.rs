//! The main job: a suite of real jobs runs to its end, and looks as it does with ecFlow's server.

use std::time::Duration;

use testing::program;

use crate::definition::{PYTHON, has_ecflow};
use crate::place::Place;
use crate::served::{self, Served};

const SUITE: &str = "\
suite s
  edit ECF_TRIES '2'
  edit ECF_OUT '%ECF_HOME%'
  edit V 'value'
  limit one 1
  family f
    task a
      event e
      meter m 0 100 90
      label lab \"before\"
      queue Q s1 s2
    task b
      trigger a:e
      inlimit /s:one
    task c
      trigger a:m ge 50 and b == complete
      inlimit /s:one
    task again
      trigger a == complete
    task never
      complete a == complete
      trigger b == aborted
  endfamily
  family g
    repeat integer I 1 3
    trigger f == complete
    task d
      label run \"\"
  endfamily
endsuite
";

fn scripts(place: &Place) {
    place.script(
        "a",
        "ecflow_client --meter=m 60\necflow_client --label=lab \"after %V% %NO:default%\"\n\
         ecflow_client --queue=Q active > %ECF_HOME%/step\necflow_client --queue=Q complete s1\n\
         ecflow_client --event=e\n",
    );
    place.script("b", "ecflow_client --wait=\"a == complete\"\n");
    place.script("c", "echo %TASK% of %FAMILY%, 100%%");
    place.script("again", "test %ECF_TRYNO% -eq 2");
    place.script("never", "exit 1");
    place.script("d", "ecflow_client --label=run \"run %I%\"");
}

/// What is printed, without what is another at each run.
pub(crate) fn normalised(place: &Place, text: &str) -> String {
    let home = place.home().display().to_string();
    let mut lines = String::new();
    for line in text.lines() {
        let line = line.replace(&home, "HOME").replace(&place.port.to_string(), "PORT");
        let is_time = |word: &str| {
            ["passwd:", "rid:", "dur:", "rt:", "state_change:", "modify_change:", "cal_count:"]
                .iter()
                .any(|start| word.starts_with(start))
        };
        let bare = line.trim_start();
        let is_apart = bare.starts_with("calendar ")
            || ["ECF_PID", "ECF_INTERVAL"]
                .iter()
                .any(|one| bare.starts_with(&format!("edit {one} ")))
            || bare.starts_with("# edit");
        if !is_apart {
            let blanks = &line[..line.len() - bare.len()];
            let words: Vec<_> = bare.split(' ').filter(|word| !is_time(word)).collect();
            lines.push_str(&format!("{blanks}{}\n", words.join(" ")));
        }
    }
    lines
}

/// Runs the suite to its end and returns what the client prints of it.
fn run(place: &Place) -> String {
    scripts(place);
    let file = place.write("s.def", SUITE);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    place.until_state("/s", "complete");
    assert_eq!(place.told(&["--query", "label", "/s/f/a:lab"]).trim(), "after value default");
    assert_eq!(std::fs::read_to_string(place.home().join("step")).expect("a step"), "s1\n");
    let job = std::fs::read_to_string(place.home().join("s/f/c.job1")).expect("a job");
    assert!(job.contains("\necho c of f, 100%\n"), "{job}");
    assert!(!job.ends_with('\n') && !job.contains("What it is."), "{job}");
    normalised(place, &place.told(&["--get_state"]))
}

#[test]
fn a_suite_of_real_jobs_runs_to_its_end_as_it_does_with_ecflow() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    assert_eq!(ours, theirs);
}

#[test]
fn a_node_put_into_a_suite_that_has_begun_runs() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let served = Served::ours(&place);
    run(&place);
    let file = place.write("s.def", SUITE);
    place.told(&["--replace=/s/f", &file.display().to_string()]);
    place.until_state("/s/f", "complete");
    served.kill();
}

#[test]
fn what_is_not_there_is_not_changed_and_what_is_there_is_not_added() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let served = Served::ours(&place);
    let file = place.write("s.def", SUITE);
    place.told(&[&format!("--load={}", file.display())]);
    let before = place.told(&["--get=/s"]);
    for alter in [
        ["--alter=change", "variable", "NONE", "value", "/s"],
        ["--alter=add", "limit", "one", "7", "/s"],
        ["--alter=add", "label", "lab", "another", "/s/f/a"],
    ] {
        assert!(!place.client(&alter).status.success(), "{alter:?}");
    }
    assert_eq!(place.told(&["--get=/s"]), before);
    place.told(&["--alter=change", "variable", "V", "another", "/s"]);
    assert!(place.told(&["--get=/s"]).contains("edit V 'another'"));
    // The server's variables are at the root, and last.
    place.told(&["--alter=add", "variable", "TOP", "1", "/"]);
    place.told(&["--alter=change", "variable", "TOP", "2", "/"]);
    served.kill();
    let served = Served::ours(&place);
    assert!(place.told(&["--get_state"]).contains("edit TOP '2'"));
    place.told(&["--alter=delete", "variable", "TOP", "/"]);
    assert!(!place.told(&["--get_state"]).contains("edit TOP"));
    served.kill();
}

#[test]
fn each_job_is_started_once_however_many_wait_when_the_server_stops() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    // The server runs eight at once.
    let tasks: Vec<String> = (0..12).map(|task| format!("t{task}")).collect();
    for task in &tasks {
        let wait = "until test -e %ECF_HOME%/go; do sleep 0.05; done";
        place.script(task, &format!("echo run >> %ECF_HOME%/ran.%TASK%\n{wait}"));
    }
    let lines: String = tasks.iter().map(|task| format!("task {task}\n")).collect();
    let file = place.write("s.def", &format!("suite s\nedit ECF_FILES '%ECF_HOME%'\n{lines}"));
    let server = served::start(&place.home(), place.port);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    let ran = |task: &String| {
        let ran = std::fs::read_to_string(place.home().join(format!("ran.{task}")));
        ran.map_or(0, |ran| ran.lines().count())
    };
    place.until("eight run", || tasks.iter().map(ran).sum::<usize>() == 8);
    server.stop(Duration::from_secs(5));
    let server = served::start(&place.home(), place.port);
    place.write("home/go", "");
    place.until_state("/s", "complete");
    assert_eq!(tasks.iter().map(ran).collect::<Vec<_>>(), [1; 12]);
    server.stop(Duration::from_secs(5));
}

#[test]
fn a_job_that_takes_longer_to_make_than_is_meant_is_named() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let command = "sleep 0.2; echo echo it";
    let file =
        place.write("s.def", &format!("suite s\n edit ECF_SCRIPT_CMD '{command}'\n task t\n"));
    let _served = Served::by_command(&place, &[], &[("ECF_TASK_THRESHOLD", "100")]);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    place.until("the task's flag", || place.told(&["--get_state=/s/t"]).contains("flag:threshold"));
    let log = place.told(&["--log=get"]);
    let line = log.lines().find(|line| line.contains("Job generation for task /s/t took "));
    let line = line.expect("a warning");
    assert!(line.starts_with("WAR:["), "{line}");
    assert!(line.ends_with("ms, Exceeds ECF_TASK_THRESHOLD(100ms)"), "{line}");
}

const OF_PYTHON: &str = "\
import ecflow, os
client = ecflow.Client('localhost', '%ECF_PORT%')
client.set_child_path('%ECF_NAME%')
client.set_child_password('%ECF_PASS%')
client.set_child_pid(str(os.getpid()))
client.set_child_try_no(int('%ECF_TRYNO%'))
client.child_init()
client.child_event('e')
client.child_meter('m', 42)
client.child_label('l', 'of Python')
step = client.child_queue('Q', 'active')
client.child_queue('Q', 'complete', step)
client.child_wait('go == complete')
client.child_complete()
";

#[test]
fn a_job_of_python_reports_by_ecflow_s_own_module() {
    if program("ecflow_client").is_none() || !has_ecflow() {
        return;
    }
    let place = Place::new();
    place.write("home/s/t.ecf", OF_PYTHON);
    let command = format!("{PYTHON} %ECF_JOB% > %ECF_JOBOUT% 2>&1");
    let file = place.write(
        "s.def",
        &format!(
            "suite s\n edit ECF_JOB_CMD '{command}'\n task go\n  \
             defstatus complete\n task t\n  event e\n  meter m 0 100\n  label l \"\"\n  \
             queue Q one two\nendsuite\n"
        ),
    );
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    place.until_state("/s/t", "complete");
    let text = place.told(&["--get_state=/s/t"]);
    for line in ["event e # set", "# 42", "# \"of Python\"", "queue Q one two # 1 complete queued"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    served.kill();
}
