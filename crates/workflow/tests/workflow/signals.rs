//! Commands that end jobs, or ask for them: they need no place of a job, and one that has waited is
//! run for the job only that it was asked for. And how commands end is known whoever starts the
//! server.

use std::time::Duration;

use workflow::protocol::{Command, PathsCommand, ServerCommand};

use crate::commands::printed;
use crate::levels::client;
use crate::place::Place;
use crate::served::{Served, start};

/// A command that notes its task and try, and hangs for as long as a file is there.
fn hangs(file: &str) -> String {
    format!(
        "touch %ECF_HOME%/{file}.%TASK%.%ECF_TRYNO%; \
         while test -e %ECF_HOME%/{file}; do sleep 0.05; done"
    )
}

fn begin(port: u16, definition: String) {
    let client = client(port);
    let file = "s.def".to_owned();
    client.command(Command::Load { force: false, definition, file }).expect("loaded");
    client.command(Command::Server(ServerCommand::Restart)).expect("started");
    client.command(Command::Begin { suite: String::new(), force: false }).expect("begun");
}

fn ask(port: u16, command: PathsCommand, path: &str) {
    let paths = vec![path.to_owned()];
    client(port).command(Command::Paths { command, paths, force: false }).expect("asked");
}

#[test]
fn a_job_whose_command_hangs_is_killed_while_such_commands_take_all_places() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    place.write("home/job", "");
    // The server runs eight at once.
    let tasks: String = (0..9).map(|at| format!("task t{at}\n")).collect();
    begin(
        place.port,
        format!(
            "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD '{}'\n\
             edit ECF_KILL_CMD 'touch %ECF_HOME%/killed'\n\
             edit ECF_STATUS_CMD 'touch %ECF_HOME%/asked'\n{tasks}endsuite\n",
            hangs("job")
        ),
    );
    let is_there = |name: &str| place.home().join(name).exists();
    let first = |at| is_there(&format!("job.t{at}.1"));
    place.until("eight run", || (0..9).filter(|at| first(*at)).count() == 8);
    // Any of them may be the one that waits, which a kill would abort at once.
    let runs = (0..9).find(|at| first(*at)).expect("one that runs");
    ask(place.port, PathsCommand::Kill, &format!("/s/t{runs}"));
    ask(place.port, PathsCommand::Status, &format!("/s/t{runs}"));
    place.until("both are run", || is_there("killed") && is_there("asked"));
    std::fs::remove_file(place.home().join("job")).expect("removed");
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_job_that_has_waited_for_a_place_is_started_only_where_it_is_still_its_task_s_own() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    place.write("home/job", "");
    // The server runs eight at once.
    let tasks: String = (0..12).map(|at| format!("task t{at}\n")).collect();
    begin(
        place.port,
        format!(
            "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD '{}'\n\
             edit ECF_KILL_CMD 'touch %ECF_HOME%/killed'\n{tasks}endsuite\n",
            hangs("job")
        ),
    );
    let has_run =
        |at: usize, attempt: u32| place.home().join(format!("job.t{at}.{attempt}")).exists();
    place.until("eight run", || (0..12).filter(|at| has_run(*at, 1)).count() == 8);
    let waiting: Vec<usize> = (0..12).filter(|at| !has_run(*at, 1)).collect();
    let path = |at: usize| format!("/s/t{}", waiting[at]);
    let address = format!("localhost:{}", place.port);
    let says = |at: usize, what: &str| printed(&["why", &address, &path(at)]).contains(what);
    place.until("four wait", || (0..4).all(|at| says(at, "its ECF_JOB_CMD waits")));
    ask(place.port, PathsCommand::Kill, &path(0));
    let why = "is not started: its task was killed before";
    place.until("it is aborted", || says(0, why));
    let client = client(place.port);
    let word = "complete".to_owned();
    let (recursive, repeats_to_last, paths) = (false, false, vec![path(1)]);
    client.command(Command::Force { word, recursive, repeats_to_last, paths }).expect("forced");
    for _ in 0..2 {
        client.command(Command::Run { paths: vec![path(2)], force: true }).expect("run");
    }
    place.until("the last try waits", || says(2, "its ECF_JOB_CMD waits"));
    std::fs::remove_file(place.home().join("job")).expect("removed");
    place.until("two are run", || has_run(waiting[2], 3) && has_run(waiting[3], 1));
    place.until("one is not", || {
        is_logged(&place, &format!("ECF_JOB_CMD of {} is not run", path(1)))
    });
    for (at, attempt) in [(0, 1), (1, 1), (2, 1), (2, 2)] {
        assert!(!has_run(waiting[at], attempt), "{at} {attempt}");
    }
    assert!(!place.home().join("killed").exists(), "there was nothing to end");
    server.stop(Duration::from_secs(1));
}

#[test]
fn of_a_task_that_is_submitted_again_while_its_job_is_made_only_the_last_job_is_started() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let of = |what: &str| format!("touch %ECF_HOME%/{what}.%TASK%.%ECF_TRYNO%");
    begin(
        place.port,
        format!(
            "suite s\nedit ECF_SCRIPT_CMD '{}; until test -e %ECF_HOME%/go; do sleep 0.05; done; \
             echo true'\nedit ECF_JOB_CMD '{}'\nedit ECF_KILL_CMD '{}'\n\
             task again\ntask killed\nendsuite\n",
            of("made"),
            of("ran"),
            of("ended")
        ),
    );
    let is_there = |name: &str| place.home().join(name).exists();
    place.until("both are made", || is_there("made.again.1") && is_there("made.killed.1"));
    let client = client(place.port);
    for _ in 0..2 {
        let paths = vec!["/s/again".to_owned()];
        client.command(Command::Run { paths, force: true }).expect("run");
    }
    ask(place.port, PathsCommand::Kill, "/s/killed");
    let at = format!("localhost:{}", place.port);
    let why = |path: &str| printed(&["why", &at, path]);
    let waits = "to be made: threads make others";
    assert!(why("/s/again").contains(waits), "its first is being made: {}", why("/s/again"));
    let killed = "is waited for; it was killed, and is not started then";
    assert!(why("/s/killed").contains(killed), "{}", why("/s/killed"));
    place.write("home/go", "");
    place.until("the last one is started", || is_there("ran.again.3"));
    // `touch` ends well, and reports nothing.
    let over = "its ECF_JOB_CMD is over, or was never started";
    place.until("its command is over", || why("/s/again").contains(over));
    let aborted = "is not started: its task was killed before";
    place.until("it is aborted", || why("/s/killed").contains(aborted));
    for none in ["ran.again.1", "made.again.2", "ran.again.2", "ran.killed.1", "ended.killed.1"] {
        assert!(!is_there(none), "{none}");
    }
    server.stop(Duration::from_secs(1));
}

/// Whether a text is in the server's log.
fn is_logged(place: &Place, what: &str) -> bool {
    place.log().contains(what)
}

#[test]
fn a_kill_that_has_waited_is_not_run_for_a_job_that_has_ended_or_another_try() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    place.write("home/kill", "");
    // The server runs 32 kills at once; others wait, in the order of time.
    let tasks: String = (0..36).map(|at| format!("task t{at:02}\n")).collect();
    begin(
        place.port,
        format!(
            "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD 'touch %ECF_HOME%/begun.%TASK%'\n\
             edit ECF_KILL_CMD '{}'\n{tasks}endsuite\n",
            hangs("kill")
        ),
    );
    let has_run = |at: u32| {
        let one = |attempt: u32| place.home().join(format!("kill.t{at:02}.{attempt}")).exists();
        (one(1), one(2))
    };
    let has_begun = |at: u32| place.home().join(format!("begun.t{at:02}")).exists();
    place.until("all are started", || (0..36).all(has_begun));
    ask(place.port, PathsCommand::Kill, "/s");
    place.until("32 run", || (0..36).filter(|at| has_run(*at).0).count() == 32);
    let client = client(place.port);
    let waits = |at: &u32| !has_run(*at).0;
    let waiting: Vec<u32> = (0..36).filter(waits).collect();
    let path = |at: usize| format!("/s/t{:02}", waiting[at]);
    let word = "complete".to_owned();
    let (recursive, repeats_to_last, paths) = (false, false, vec![path(0)]);
    client.command(Command::Force { word, recursive, repeats_to_last, paths }).expect("forced");
    client.command(Command::Run { paths: vec![path(1)], force: true }).expect("run");
    std::fs::remove_file(place.home().join("kill")).expect("removed");
    let is_not_run = |path: &str| {
        let why = "is not run: the job that it was asked for";
        is_logged(&place, &format!("ECF_KILL_CMD of {path} {why}"))
    };
    place.until("two are not run", || is_not_run(&path(0)) && is_not_run(&path(1)));
    place.until("two are", || has_run(waiting[2]).0 && has_run(waiting[3]).0);
    assert_eq!([0, 1].map(|at| has_run(waiting[at])), [(false, false); 2]);
    server.stop(Duration::from_secs(1));
}

#[test]
fn why_says_what_has_become_of_kill_and_status_commands() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    place.write("home/kill", "");
    place.write("home/all", "");
    let all: String = (0..40).map(|at| format!("task t{at}\n")).collect();
    begin(
        place.port,
        format!(
            "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD true\n\
             task fails\nedit ECF_KILL_CMD 'exit %WITH:3%'\nedit ECF_STATUS_CMD 'exit 4'\n\
             task ends\nedit ECF_KILL_CMD 'true %ECF_RID%'\n\
             task hangs\nedit ECF_KILL_CMD '{}'\n\
             family f\nedit ECF_KILL_CMD '{}'\n{all}endfamily\nendsuite\n",
            hangs("kill"),
            hangs("all")
        ),
    );
    let address = format!("localhost:{}", place.port);
    let why = |path: &str| printed(&["why", &address, path]);
    let until = |path: &str, what: &[&str]| {
        place.until(&format!("{path}: {what:?}"), || {
            let why = why(path);
            what.iter().all(|what| why.contains(what))
        });
    };
    let client = client(place.port);
    place.until("all are submitted", || {
        let tree = client.tree().expect("a tree");
        tree.walk(workflow::model::NodeId::ROOT).all(|id| {
            let node = tree.node(id);
            !node.kind.is_job() || node.state == workflow::model::State::Submitted
        })
    });
    ask(place.port, PathsCommand::Kill, "/s/fails");
    let unnamed = "its job has not named its process: ECF_RID is empty for its commands";
    let failed = ["its ECF_KILL_CMD failed", "it exited with status 3 [ exit 3 ]", unnamed];
    until("/s/fails", &failed);
    assert!(!why("/s/fails").contains("killcmd_failed"), "the reason is better than the flag");
    ask(place.port, PathsCommand::Status, "/s/fails");
    until("/s/fails", &["its ECF_STATUS_CMD failed", "it exited with status 4", failed[0]]);
    ask(place.port, PathsCommand::Kill, "/s/ends");
    until("/s/ends", &["its ECF_KILL_CMD succeeded", "no end was reported [ true ]", unnamed]);
    ask(place.port, PathsCommand::Kill, "/s/hangs");
    until("/s/hangs", &["its ECF_KILL_CMD has run for", "end it by `kill -- -"]);
    ask(place.port, PathsCommand::Kill, "/s/f");
    let waits = "its ECF_KILL_CMD waits, as all 32 places of ECF_KILL_CMD are taken: the oldest, \
                 ECF_KILL_CMD of /s/hangs, has run for";
    let count = || (0..40).filter(|at| why(&format!("/s/f/t{at}")).contains(waits)).count();
    place.until("all but 31 wait", || count() == 9);
    server.stop(Duration::from_secs(1));
    // The next server knows no more than the flag.
    let server = start(&place.home(), place.port);
    until("/s/fails", &["a kill of it has failed (flag killcmd_failed): the server's log has why"]);
    until("/s/ends", &["was killed (flag killed), and it has reported no end"]);
    for file in ["kill", "all"] {
        std::fs::remove_file(place.home().join(file)).expect("removed");
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn why_says_which_jobs_an_earlier_server_process_has_started() {
    let place = Place::new();
    place.write("home/job", "");
    let served = Served::ours(&place);
    let job = hangs("job");
    begin(
        place.port,
        format!("suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD '{job}'\ntask t\nendsuite\n"),
    );
    let address = format!("localhost:{}", place.port);
    let why = || printed(&["why", &address, "/s/t"]);
    place.until("it runs", || why().contains("its ECF_JOB_CMD has run for"));
    let earlier = "under an earlier server process: this one doesn't see how its ECF_JOB_CMD ends";
    assert!(!why().contains(earlier), "{}", why());
    served.kill();
    let served = Served::ours(&place);
    assert!(why().contains(earlier), "{}", why());
    let known = "1 task (/s/t) submitted or active since an earlier server process";
    place.until("the log has it", || is_logged(&place, known));
    // Another job of the task is this one's.
    let (paths, force) = (vec!["/s/t".to_owned()], true);
    client(place.port).command(Command::Run { paths, force }).expect("run");
    place.until("it runs", || why().contains("its ECF_JOB_CMD has run for"));
    assert!(!why().contains(earlier), "{}", why());
    std::fs::remove_file(place.home().join("job")).expect("removed");
    served.kill();
}

/// What a kill or status command that can't be started is answered, by both servers.
#[test]
fn a_kill_that_can_t_be_started_is_refused_as_ecflow_s_server_does() {
    if ["ecflow_client", "ecflow_server"].iter().any(|name| testing::program(name).is_none()) {
        return;
    }
    let [ours, theirs] = [false, true].map(|is_theirs| {
        let place = Place::new();
        let _served = if is_theirs { Served::theirs(&place) } else { Served::ours(&place) };
        begin(
            place.port,
            "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD true\ntask unnamed\n\
             task undefined\nedit ECF_KILL_CMD ''\nedit ECF_STATUS_CMD ''\n\
             task without\nedit ECF_KILL_CMD 'kill %NONE%'\nedit ECF_STATUS_CMD '%NONE%'\n\
             endsuite\n"
                .to_owned(),
        );
        place.until_state("/s/without", "submitted");
        place.told(&["--force=active", "/s/unnamed"]);
        let mut answers = Vec::new();
        for task in ["unnamed", "undefined", "without"].map(|task| format!("/s/{task}")) {
            for option in ["--kill", "--status"] {
                let output = place.client(&[&format!("{option}={task}")]);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                answers.push((output.status.code(), said));
            }
            let state = place.told(&["--get_state", &task]);
            let line = state.lines().find(|line| line.contains("flag:killcmd_failed"));
            let line = line.expect("its flags").split("flag:").nth(1).expect("flags");
            answers.push((None, line.split(' ').next().unwrap_or_default().to_owned()));
        }
        answers
    });
    assert_eq!(ours, theirs);
}

#[test]
fn how_commands_end_is_known_where_whoever_starts_the_server_ignores_sigchld() {
    let place = Place::new();
    let served = Served::ignoring_ends(&place);
    begin(
        place.port,
        "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_TRIES 1\nedit ECF_JOB_CMD 'exit 3'\ntask t\n\
         endsuite\n"
            .to_owned(),
    );
    let at = format!("localhost:{}", place.port);
    place.until("it is known", || printed(&["why", &at, "/s/t"]).contains("exited with status 3"));
    served.kill();
}
