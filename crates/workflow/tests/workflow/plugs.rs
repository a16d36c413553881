//! `--plug`: nodes are moved within a server, and between this one and ecFlow's, both ways.

use testing::program;

use crate::edited::{assert_same, said};
use crate::jobs::normalised;
use crate::place::Place;
use crate::served::Served;

const SUITES: &str = "\
suite s
  edit V 'it is'
  family f
    repeat integer I 1 5
    task a
      event e
      label l \"x\"
      trigger b == complete
    task b
      meter m 0 10
    task c
  endfamily
  family g
    task a
    task d
  endfamily
  task t
endsuite
suite u
  family f
  endfamily
  task x
endsuite
";

fn tree(place: &Place) -> String {
    let text = normalised(place, &place.told(&["--get_state"]));
    text.lines().filter(|line| !line.contains(" # server")).flat_map(|line| [line, "\n"]).collect()
}

fn loaded(place: &Place) {
    let file = place.write("s.def", SUITES);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--begin=s"]);
    place.told(&["--force=complete", "/s/f/b"]);
    place.told(&["--alter=change", "label", "l", "two\nlines", "/s/f/a"]);
    place.told(&["--suspend", "/s/f/c"]);
    place.told(&["--alter=change", "meter", "m", "7", "/s/f/b"]);
}

/// Moves that a server makes by itself, and those that it refuses.
fn within(place: &Place) -> Vec<String> {
    loaded(place);
    let own = format!("localhost:{}", place.port);
    let (to, wrong) = (format!("{own}/u"), format!("{own}/nope"));
    let words: &[&[&str]] = &[
        &["--plug=/s/f/c", "/s/f/a"],
        &["--plug=/s/f/c", "/s/f/b"],
        &["--plug=/s/f/c", "/s/f/c"],
        &["--plug=/u", "/s"],
        &["--plug=/s/f/a", "/s/g"],
        &["--plug=/s/f/a", "/s/g/d"],
        &["--plug=/s/f/c", "/s/g/d"],
        &["--plug=/s/g", "/u"],
        &["--plug=/s/f", "/u"],
        &["--plug=/s/f/b", &to],
        &["--plug=/s/f/b", &wrong],
        &["--plug=/nope", "/u"],
        &["--plug=/s/t", "/nope"],
        &["--plug=/s", "/u/x"],
        &["--force=active", "/s/t"],
        &["--plug=/s/t", "/u"],
    ];
    let moved = words.iter().map(|words| format!("{}{}", said(place, words), tree(place)));
    moved.collect()
}

#[test]
fn nodes_are_moved_within_a_server_as_with_ecflow() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = within(&own);
    let last = tree(&own);
    served.kill();
    let served = Served::ours(&own);
    assert_eq!(last, tree(&own));
    served.kill();
    let served = Served::theirs(&other);
    let theirs = within(&other);
    served.kill();
    assert_same(&ours, &theirs);
}

/// What both servers have after each move from the first to the second.
fn between(from: &Place, to: &Place) -> Vec<String> {
    loaded(from);
    let file = to.write("w.def", "suite w\n  family f\n    task a\n  endfamily\nendsuite\n");
    to.told(&[&format!("--load={}", file.display())]);
    let address = format!("localhost:{}", to.port);
    let at = |path: &str| format!("{address}{path}");
    let words = [
        ["--plug=/s/f/b".to_owned(), at("/w/f")],
        ["--plug=/s/g".to_owned(), at("/w/f/a")],
        ["--plug=/s/f/a".to_owned(), at("/w/f")],
        ["--plug=/s/f".to_owned(), at("/w")],
        ["--plug=/s/f".to_owned(), at("/nope")],
        ["--plug=/s/f".to_owned(), at("")],
        ["--plug=/s".to_owned(), at("/w")],
        ["--plug=/s".to_owned(), at("")],
        ["--plug=/u".to_owned(), "localhost:1/u".to_owned()],
    ];
    let mut all = Vec::new();
    for words in words {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = said(from, &words).replace(&to.port.to_string(), "OTHER");
        // Each connection fails in its own words.
        let text = text.split("localhost:1 ").next().unwrap_or_default().to_owned();
        all.push(format!("{text}{}{}", tree(from), tree(to)));
    }
    all
}

#[test]
fn nodes_are_moved_between_this_server_and_ecflows_both_ways() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let places: Vec<Place> = (0..8).map(|_| Place::new()).collect();
    let serve = |number: usize, is_own: bool| match is_own {
        true => Served::ours(&places[number]),
        false => Served::theirs(&places[number]),
    };
    let mut results = Vec::new();
    for (number, (from, to)) in
        [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate()
    {
        let served = (serve(2 * number, from), serve(2 * number + 1, to));
        results.push(between(&places[2 * number], &places[2 * number + 1]));
        drop(served);
    }
    let theirs = results.pop().expect("of four");
    results.iter().for_each(|ours| assert_same(ours, &theirs));
    // What the journals have makes the same again.
    let last = results[0].last().expect("trees");
    let _both = (serve(0, true), serve(1, true));
    assert!(last.ends_with(&format!("{}{}", tree(&places[0]), tree(&places[1]))));
}
