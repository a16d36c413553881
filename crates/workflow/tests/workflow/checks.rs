//! `--check`, `--checkJobGenOnly` and `--job_gen`, as with ecFlow.

use testing::program;

use crate::edited::{assert_same, said};
use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
extern /ext/a
extern /ext/b:ev
extern /ext/c:LIM
suite s
  limit l 1
  family f
    task a
      event e
      meter m 0 10
      trigger /ext/a == complete and /ext/b:ev
    task b
      trigger a == complete and a:e and a:m ge 5
      complete a == aborted
      inlimit /s:l
      inlimit -n /ext/c:LIM 3
      inlimit -s nope
      inlimit /s/f2:l2 5
    task c
      trigger :UP == 2 and a<flag>late
      edit UP 2
    task d
      trigger a:e
    task r
      trigger ../f2/z == complete
    task q
      trigger ./g/d == complete
    family g
      autorestore ../f2
      task d
        inlimit l
    endfamily
  endfamily
  family f2
    limit l2 2
    task z
      trigger 1 == 0
  endfamily
endsuite
";

const COMMANDS: &[&[&str]] = &[
    &["--check=_all_"],
    &["--check=/"],
    &["--check=/s/f/b"],
    &["--check=/s", "/s/f/c"],
    &["--check=/nope"],
    &["--check=/s/f/b", "/nope"],
    &["--check=/s/f/a", "/nope", "/s/f/b"],
    &["--alter=delete", "event", "e", "/s/f/a"],
    &["--check=/s/f/d"],
    &["--delete", "yes", "/s/f/a"],
    &["--check=_all_"],
    &["--check=/s/f/c", "/s/f/b"],
    &["--delete", "yes", "/s/f2"],
    &["--alter=delete", "limit", "l", "/s"],
    &["--check=/"],
    &["--check=/s/f/r"],
    &["--check=/s/f/q"],
    &["--alter=delete", "variable", "UP", "/s/f/c"],
    &["--check=/s/f/c"],
    &["--check=/s/f/g", "/s/f/c"],
    &["--job_gen=/nope"],
    &["--job_gen=/s"],
    &["--restart"],
    &["--job_gen=/nope"],
    &["--job_gen"],
];

#[test]
fn what_is_not_there_is_named_as_with_ecflow() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let run = |place: &Place| -> Vec<String> {
        let file = place.write("s.def", SUITE);
        place.told(&[&format!("--load={}", file.display())]);
        COMMANDS.iter().map(|words| said(place, words)).collect()
    };
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    assert_same(&ours, &theirs);
}

#[test]
fn jobs_are_written_and_not_started_where_that_is_asked() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let run = |place: &Place| -> Vec<String> {
        place.write("home/s/a.ecf", "%TASK% %ECF_TRYNO% %FAMILY:none% %DATE% %V%\n");
        place.write("home/s/bad.ecf", "%NOPE%\n");
        place.write("home/s/f/never.ecf", "x\n");
        let text = "suite s\nedit V 'value'\ntask a\ntask bad\ntask none\ntask dummy\n\
                    edit ECF_DUMMY_TASK ''\nfamily f\ndefstatus complete\ntask never\n";
        let file = place.write("s.def", text);
        place.told(&[&format!("--load={}", file.display())]);
        let mut all = vec![said(place, &["--checkJobGenOnly"])];
        let job = place.home().join("s/a.job0");
        all.push(std::fs::read_to_string(&job).expect("a job"));
        std::fs::remove_file(&job).expect("removed");
        assert!(!place.home().join("s/f/never.job0").exists());
        all.push(said(place, &["--checkJobGenOnly=/s/a"]));
        all.push(std::fs::read_to_string(&job).expect("a job"));
        all.push(said(place, &["--checkJobGenOnly=/s/nope"]));
        all
    };
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    let tree = own.told(&["--get_state", "/s"]);
    served.kill();
    // ecFlow's server forgets here that a suite had begun, and all states.
    let served = Served::ours(&own);
    assert_eq!(tree, own.told(&["--get_state", "/s"]));
    own.told(&["--begin=s"]);
    own.told(&["--force=aborted", "/s/a"]);
    let tree = own.told(&["--get_state", "/s/a"]);
    own.told(&["--checkJobGenOnly=/s/a"]);
    assert_eq!(tree, own.told(&["--get_state", "/s/a"]));
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    assert_same(&ours, &theirs);
}
