//! The calendars of suites: when they go on, beside ecFlow's server.

use std::time::Duration;

use testing::program;

use crate::place::Place;
use crate::served::Served;

/// Longer than two of the seconds in which a minute passes.
const FOR_TWO: Duration = Duration::from_millis(2500);

/// The minute that the suite's clock has, and whether its time is free.
fn clock(place: &Place) -> (String, bool) {
    let text = place.told(&["--get_state"]);
    let from = text.split_once("suiteTime:").expect("a calendar").1;
    let minute = from.split(' ').nth(1).expect("a time of day");
    (minute.to_owned(), text.contains("time +00:01 # free"))
}

/// The suite's clock stands for a while.
fn stands(place: &Place) -> (String, bool) {
    let before = clock(place);
    std::thread::sleep(FOR_TWO);
    assert_eq!(clock(place), before, "it goes on");
    before
}

fn goes_on(place: &Place) {
    let before = clock(place);
    place.until("the clock goes on", || clock(place).0 != before.0);
}

fn check(place: &Place, serve: fn(&Place) -> Served) {
    let file = place.write("s.def", "suite s\n task a\n  time +00:01\nendsuite\n");
    let served = serve(place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--begin=s"]);
    let (_, is_free) = stands(place);
    assert!(!is_free, "the time has not come");
    place.told(&["--shutdown=yes"]);
    stands(place);
    place.told(&["--restart"]);
    goes_on(place);
    place.told(&["--halt=yes"]);
    goes_on(place);
    place.told(&["--shutdown=yes"]);
    goes_on(place);
    place.told(&["--halt=yes"]);
    place.told(&["--check_pt"]);
    served.kill();
    // Another process has not run yet.
    let served = serve(place);
    stands(place);
    place.told(&["--restart"]);
    goes_on(place);
    served.kill();
}

#[test]
fn a_suite_s_clock_stands_until_the_server_runs_and_goes_on_from_then_while_it_is_halted() {
    let Some(_) = program("ecflow_client") else { return };
    check(&Place::new(), Served::ours);
}

#[test]
fn that_of_ecflow_s_server_does_the_same() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    check(&Place::new(), Served::theirs);
}

#[test]
fn a_server_that_runs_when_it_ends_goes_on_with_its_clocks_at_once() {
    let Some(_) = program("ecflow_client") else { return };
    let place = Place::new();
    let file = place.write("s.def", "suite s\n task a\n  trigger 1 == 0\nendsuite\n");
    let served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--begin=s"]);
    place.told(&["--restart"]);
    served.kill();
    let served = Served::ours(&place);
    goes_on(&place);
    served.kill();
}
