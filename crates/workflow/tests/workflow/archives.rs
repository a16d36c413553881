//! Archives: written, read again by hand, at a requeue, and by `autorestore`, as with ecFlow.

use testing::program;

use crate::edited::{assert_same, is_as_with_ecflow, said};
use crate::jobs::normalised;
use crate::place::Place;
use crate::served::{self, Served};

const SUITES: &str = "\
suite s
  limit l 1
  family f
    family g
      task a
        label x \"y\"
      task b
        inlimit /s:l
    endfamily
    task c
      trigger g/a == complete
  endfamily
  family xf
    task z
  endfamily
  family e
  endfamily
  task t
endsuite
suite u
  task x
endsuite
suite r
  family now
    autoarchive 0
    task tx
      defstatus complete
  endfamily
  family later
    autoarchive +00:02
    task ty
      defstatus complete
  endfamily
  family from
    task t1
      trigger ../now<flag>archived
      autorestore ../now
      defstatus suspended
    task t2
      trigger 1 == 0
  endfamily
endsuite
";

/// What commands are given, one after another.
const COMMANDS: &[&[&str]] = &[
    &["--archive=/s/f"],
    &["--begin=s"],
    &["--restore=/s/f"],
    &["--archive=/s/f/g", "/s/f/c", "/nope", "/s/e", "/s/t"],
    &["--archive=/s/f"],
    &["--restore=/s/f"],
    &["--restore=/s/f"],
    &["--restore=/s/f/g"],
    &["--restore=/s/e"],
    &["--restore=/s/t"],
    &["--restore=/nope"],
    &["--archive=/s/f/g"],
    &["--archive=/s/f/g"],
    &["--archive=/s"],
    &["--requeue=force", "/s"],
    &["--archive=/s/xf"],
    &["--force=active", "/s/f/c"],
    &["--archive=/s/f"],
    &["--delete", "yes", "/s/f"],
    &["--delete", "_all_", "yes"],
    &["--requeue=force", "/s/f"],
    &["--archive=/s/f"],
    &["--delete=force", "yes", "/s/f"],
    &["--begin=u"],
    &["--archive=/u"],
    &["--delete=force", "yes", "/u"],
    &["--delete", "yes", "/nope", "/s/t"],
];

/// The names of the archives that are there.
fn archives(place: &Place) -> String {
    let entries = std::fs::read_dir(place.home()).expect("home").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".check")?.split_once(':')?.1.to_owned()))
        .collect();
    names.sort();
    names.join(" ")
}

fn run(place: &Place) -> Vec<String> {
    let file = place.write("s.def", SUITES);
    place.told(&[&format!("--load={}", file.display())]);
    let state = || normalised(place, &place.told(&["--get_state"]));
    let mut all = Vec::new();
    for words in COMMANDS {
        all.push(format!("{}{}", said(place, words), state()));
        if words[0].starts_with("--archive") || words[0].starts_with("--restore") {
            all.push(archives(place));
        }
    }
    place.told(&["--begin=r"]);
    place.told(&["--suspend=/s"]);
    place.told(&["--restart"]);
    let is_archived = |path: &str| place.told(&["--get_state", path]).contains("archived");
    // A server may write a file behind the mark of its node.
    place.until("both are archived", || {
        is_archived("/r/now") && is_archived("/r/later") && archives(place).contains("later r:now")
    });
    all.push(format!("{}{}", state(), archives(place)));
    place.told(&["--force=complete", "/r/from/t1"]);
    place.until("it is restored", || !is_archived("/r/now"));
    all.push(state());
    all
}

#[test]
fn nodes_are_archived_and_restored_as_with_ecflow() {
    is_as_with_ecflow(run);
}

#[test]
fn an_archive_of_either_server_is_restored_by_the_other_and_outlives_a_crash() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let place = Place::new();
    let file = place.write("s.def", SUITES);
    let tree = |path: &str| normalised(&place, &place.told(&["--get_state", path]));
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--begin=s"]);
    place.told(&["--force=complete", "/s/f/g/a"]);
    place.told(&["--alter=change", "label", "x", "two\nlines", "/s/f/g/a"]);
    let before = tree("/s/f/g/a");
    place.told(&["--archive=/s/f"]);
    served.kill();
    let served = Served::ours(&place);
    assert!(tree("/s/f").contains("archived") && !tree("/s/f").contains("task"));
    place.told(&["--restore=/s/f"]);
    assert_eq!(tree("/s/f/g/a"), before);
    served.kill();
    let ours = served::start(&place.home(), place.port);
    assert_eq!(tree("/s/f/g/a"), before);
    place.told(&["--archive=/s/f"]);
    ours.stop(std::time::Duration::from_secs(5));
    let theirs = Served::theirs(&place);
    place.told(&["--restore=/s/f"]);
    assert_eq!(tree("/s/f/g/a"), before);
    place.told(&["--archive=/s/f/g"]);
    place.told(&["--check_pt"]);
    theirs.kill();
    std::fs::remove_dir_all(place.home().join(".loadline/journal")).expect("removed");
    let ours = served::start(&place.home(), place.port);
    place.told(&["--restore=/s/f/g"]);
    assert_eq!(tree("/s/f/g/a"), before);
    // One that can't be written leaves all as it was; one that can't be read stays archived.
    let held = format!("{}.{}.:s:f:g.check.new", workflow::server::host_name(), place.port);
    std::fs::create_dir(place.home().join(held)).expect("a folder in the way");
    let refused = place.client(&["--archive=/s/f/g"]);
    assert!(!refused.status.success());
    assert_eq!(tree("/s/f/g/a"), before);
    place.told(&["--archive=/s/xf"]);
    let name = format!("{}.{}.:s:xf.check", workflow::server::host_name(), place.port);
    std::fs::write(place.home().join(name), "no archive").expect("damaged");
    assert!(!place.client(&["--restore=/s/xf"]).status.success());
    place.told(&["--requeue=force", "/s/xf"]);
    assert!(tree("/s/xf").contains("archived"));
    ours.stop(std::time::Duration::from_secs(5));
}

#[test]
fn a_checkpoint_is_restored_where_the_server_is_halted_and_has_no_suites() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let run = |place: &Place| {
        let file = place.write("s.def", SUITES);
        let state = || normalised(place, &place.told(&["--get_state"]));
        place.told(&[&format!("--load={}", file.display())]);
        place.told(&["--begin=s"]);
        place.told(&["--alter=add", "variable", "OWN", "value", "/"]);
        place.told(&["--force=complete", "/s/f/g/a"]);
        place.told(&["--check_pt"]);
        let mut all = vec![said(place, &["--restore_from_checkpt"])];
        place.told(&["--delete=force", "yes", "_all_"]);
        place.told(&["--shutdown=yes"]);
        all.push(said(place, &["--restore_from_checkpt"]));
        place.told(&["--halt=yes"]);
        all.push(said(place, &["--restore_from_checkpt"]));
        all.push(state());
        all
    };
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    served.kill();
    let served = Served::ours(&own);
    assert_eq!(ours.last(), Some(&normalised(&own, &own.told(&["--get_state"]))));
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    assert_same(&ours, &theirs);
}
