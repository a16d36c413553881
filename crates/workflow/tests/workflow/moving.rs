//! Moving a server's home from ecFlow's server to this one, back, and in again.

use std::time::Duration;

use testing::program;

use crate::place::Place;
use crate::served::{self, Served};

const SUITE: &str = "\
suite s
  edit USER 'x'
  limit disk 3
  repeat date D 20240228 20240302
  family f
    inlimit /s:disk
    task a
      event 1 go
      meter m 0 100
      label info \"not yet\"
      late -s +00:15
    task b
      trigger a == complete and a:go
      cron 10:00
    task c
      time 10:00 12:00 01:00
      today 09:00
      date 1.*.2020
      queue Q a b c
  endfamily
endsuite
";

/// The tree with all of its state, without what goes on by itself: the server's process, the clock.
fn tree(place: &Place) -> String {
    let text = place.told(&["--migrate"]);
    let start = text.find("suite s").expect("the suite");
    let lines = text[start..].lines().filter(|line| !line.trim_start().starts_with("calendar "));
    lines.fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn a_home_is_moved_in_and_back_unchanged_and_two_states_are_not_mixed() {
    let Some(_) = program("ecflow_server") else { return };
    let place = Place::new();
    let load = format!("--load={}", place.write("s.def", SUITE).display());
    let theirs = Served::theirs(&place);
    for command in [
        &[load.as_str()][..],
        &["--begin=s"],
        &["--force=set", "/s/f/a:go"],
        &["--alter=change", "meter", "m", "40", "/s/f/a"],
        &["--alter=add", "variable", "NEW", "it's 'quoted'\ntwo lines", "/s/f"],
        &["--suspend", "/s/f/c"],
        &["--force=aborted", "/s/f/c"],
        &["--check_pt"],
    ] {
        place.told(command);
    }
    let before = tree(&place);
    theirs.kill();
    // What was taken outlives a crash, with and without a change after it.
    let ours = Served::ours(&place);
    assert_eq!(tree(&place), before);
    ours.kill();
    let ours = Served::ours(&place);
    assert_eq!(tree(&place), before);
    place.told(&["--alter=change", "event", "go", "clear", "/s/f/a"]);
    let before = tree(&place);
    ours.kill();
    let ours = served::start(&place.home(), place.port);
    assert_eq!(tree(&place), before);
    place.told(&["--resume", "/s/f/c"]);
    place.told(&["--alter=change", "label", "info", "by this server", "/s/f/a"]);
    let changed = tree(&place);
    assert_ne!(changed, before);
    ours.stop(Duration::from_secs(5));
    let theirs = Served::theirs(&place);
    assert_eq!(tree(&place), changed);
    place.told(&["--force=complete", "/s/f/c"]);
    place.told(&["--check_pt"]);
    let last = tree(&place);
    theirs.kill();
    let why = served::refusal(&place.home(), place.port);
    assert!(why.contains("is not what this server has left") && why.contains("journal"), "{why}");
    // Nor is it once the journal is newer, by a run at another port, which says what it leaves.
    let elsewhere = served::start(&place.home(), Place::new().port);
    elsewhere.stop(Duration::from_secs(5));
    let why = served::refusal(&place.home(), place.port);
    assert!(why.contains("is not what this server has left") && why.contains("journal"), "{why}");
    std::fs::remove_dir_all(place.home().join(".loadline/journal")).expect("removed");
    let ours = served::start(&place.home(), place.port);
    assert_eq!(tree(&place), last);
    ours.stop(Duration::from_secs(5));
}

#[test]
fn a_home_that_was_first_opened_at_a_wrong_port_keeps_what_is_to_be_moved_in() {
    let Some(_) = program("ecflow_server") else { return };
    let place = Place::new();
    let load = format!("--load={}", place.write("s.def", SUITE).display());
    let theirs = Served::theirs(&place);
    place.told(&[&load]);
    place.told(&["--check_pt"]);
    let before = tree(&place);
    theirs.kill();
    let elsewhere = served::start(&place.home(), Place::new().port);
    elsewhere.stop(Duration::from_secs(5));
    let why = served::refusal(&place.home(), place.port);
    assert!(why.contains("To take it, remove"), "{why}");
    std::fs::remove_dir_all(place.home().join(".loadline/journal")).expect("removed");
    let ours = served::start(&place.home(), place.port);
    assert_eq!(tree(&place), before);
    ours.stop(Duration::from_secs(5));
}

#[test]
fn a_checkpoint_is_answered_once_it_is_written_or_can_not_be() {
    let Some(_) = program("ecflow_client") else { return };
    let place = Place::new();
    let server = served::start(&place.home(), place.port);
    let name = format!("{}.{}.ecf.check", workflow::server::host_name(), place.port);
    let in_the_way = place.home().join(format!("{name}.new"));
    std::fs::create_dir(&in_the_way).expect("a folder");
    let output = place.client(&["--check_pt"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Could not save check point"), "{said}");
    std::fs::remove_dir(&in_the_way).expect("removed");
    let file = place.write("s.def", SUITE);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--check_pt"]);
    let check = place.home().join(name);
    let text = std::fs::read_to_string(&check).expect("a checkpoint");
    assert!(text.contains("suite s"), "{text}");
    place.told(&["--alter=change", "variable", "USER", "y", "/s"]);
    server.stop(Duration::from_secs(5));
    // Whoever puts an earlier one back means something by it.
    let own = std::fs::read(&check).expect("the last one");
    std::fs::write(&check, text).expect("put back");
    let why = served::refusal(&place.home(), place.port);
    assert!(why.contains("is not what this server has left there"), "{why}");
    std::fs::write(&check, own).expect("put back");
    served::start(&place.home(), place.port).stop(Duration::from_secs(5));
}
