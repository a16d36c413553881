//! What was acknowledged is there after a crash.

use testing::program;
use workflow::load::{Counts, generate};

use crate::place::Place;
use crate::served::Served;

#[test]
fn what_was_acknowledged_survives_ten_crashes() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let file = place.write("s.def", "suite s\n  task t\n    label l \"\"\nendsuite\n");
    let mut served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    let numbers = |text: String| -> u32 {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix("state_change:"));
        word.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let mut last = 0;
    for round in 0..10 {
        let value = format!("round {round}");
        place.told(&["--alter=change", "label", "l", &value, "/s/t"]);
        served.kill();
        served = Served::ours(&place);
        assert_eq!(place.told(&["--query", "label", "/s/t:l"]).trim(), value);
        let number = numbers(place.told(&["--get_state"]));
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    served.kill();
}

#[test]
fn a_stop_leaves_a_snapshot_from_which_the_next_server_has_the_same_tree() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let mut text = Vec::new();
    generate(&Counts::scaled(0.03).expect("a scale"), &mut text).expect("a definition");
    let file = place.write("large.def", &String::from_utf8(text).expect("a text"));
    let served = Served::by_command(&place, &[], &[]);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--alter=add", "variable", "KEPT", "a  b", "/s07"]);
    place.told(&["--suspend", "/s03"]);
    // Behind the server's own variables, which are the new process's.
    let suites = || {
        let text = place.told(&["--get_state"]);
        text.find("\nsuite ").map(|at| text[at..].to_owned()).expect("suites")
    };
    let before = suites();
    assert!(served.stop());
    let names = std::fs::read_dir(place.home().join(".loadline/journal")).expect("a journal");
    let names: Vec<_> = names.map(|one| one.expect("a file").file_name()).collect();
    let is_snapshot = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".snapshot");
    assert!(names.iter().any(is_snapshot), "{names:?}");
    let _served = Served::by_command(&place, &[], &[]);
    assert_eq!(suites(), before);
    assert_eq!(place.told(&["--edit_history=/s03"]).lines().count(), 1);
}
