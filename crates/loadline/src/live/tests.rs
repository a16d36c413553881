//! The view at the sizes of terminals, and with extreme figures.

use std::path::Path;
use std::time::Duration;

use lab::drive::{Counts, Pressure, Second};
use lab::plan::Plan;
use lab::run::{Activity, RunEvent, SliceStats, TargetStatus};
use ledger::Validity;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw::draw;
use super::state::State;

/// A run of these targets.
pub(super) fn begun(targets: &[&str]) -> State {
    let mut suite = "title = \"Cache: reads under load\"\n".to_owned();
    for name in targets {
        suite.push_str(&format!("[[target]]\nname = {name:?}\nserve = \"cache\"\n"));
    }
    suite.push_str(
        "[workload]\nservice = 'cache'\noperation = 'get'\nkeys = { count = 9 }\n\
         value = { bytes = 9 }\n[[clients]]\n[rounds]\nmeasure = '5s'\nat_most = 5\n",
    );
    let plan = Plan::parse(Path::new("a.toml"), suite, &[], crate::registry::registry());
    State::of(&plan.expect("a suite"))
}

/// Folds an event, at the beginning of the run.
fn fold(state: &mut State, event: &RunEvent<'_>) {
    state.fold(Duration::ZERO, event);
}

fn place(state: &mut State, point: &str, round: u32, words: &str) {
    fold(state, &RunEvent::Activity(Activity { point, round, words, done: 0.0, left: None }));
}

fn passed(state: &mut State, measured: &[Second], settled: u64) {
    fold(state, &RunEvent::Seconds { measured: measured.to_vec(), settled });
}

/// A slice of 4 s.
fn slice(operations: u64) -> SliceStats {
    SliceStats {
        target: 0,
        duration_ns: 4_000_000_000,
        rate_ns: 4_000_000_000,
        counts: Counts { operations, wrong: 5, ..Counts::default() },
        server_ns: None,
        generator_ns: 0,
        busy: 0.5,
        pressure: Pressure::default(),
        times: Vec::new(),
        causes: Vec::new(),
    }
}

/// The same in the middle of its third round.
fn running() -> State {
    let mut state = begun(&["loadline", "memcached"]);
    place(&mut state, "16 conns · depth 1 · closed", 3, "measuring loadline, slice 4 of 10");
    state.done = 0.42;
    for (place, side) in state.targets.iter_mut().enumerate() {
        let scale = place as u64 + 1;
        for n in 1..2_000 {
            side.latency.record(30_000 * scale + n * n / 40).expect("in its bounds");
            side.lag.record(n).expect("in its bounds");
        }
        side.rate = Some(480_000.0 / scale as f64 + 36_000.0);
        side.rates.extend((0..30).map(|n| 480_000.0 / scale as f64 + f64::from(n % 5) * 9_000.0));
        (side.server, side.busy, side.now) = (Some(0.98), Some(0.84), Some(0.97));
        (side.backlog, side.valid, side.trials) = (Some(12), 2, 2);
        side.limit = Some("one server thread (100 % of core 0)".to_owned());
    }
    state.targets[1].bad.wrong = 7;
    state.targets[1].valid = 1;
    state.targets[1].reason = Some("wrong answers: an older version".to_owned());
    state.generator_now = Some(1.02);
    state.cores = vec![(0, 0.99), (1, 0.5), (2, 0.0)];
    fold(
        &mut state,
        &RunEvent::Note("after 5 rounds: 24 rounds would show a difference of 1.20 %"),
    );
    state
}

/// The lines on a terminal of this size.
fn drawn(state: &State, width: u16, height: u16, colour: bool) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let at = Duration::from_secs(23);
    terminal.draw(|frame| draw(frame, state, at, colour)).expect("it draws");
    let buffer = terminal.backend().buffer();
    if !colour {
        let plain =
            |cell: &ratatui::buffer::Cell| cell.style() == ratatui::buffer::Cell::EMPTY.style();
        assert!(buffer.content().iter().all(plain), "no colours were wanted");
    }
    let lines = buffer.content().chunks(width.into());
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

fn has(lines: &[String], wanted: &[&str]) {
    let all = lines.join("\n");
    for wanted in wanted {
        assert!(all.contains(wanted), "no \"{wanted}\" in\n{all}");
    }
}

#[test]
fn a_usual_terminal_shows_where_the_run_is_and_every_figure() {
    let lines = drawn(&running(), 80, 24, true);
    assert!(lines[0].starts_with("Cache: reads under load") && lines[0].ends_with(" 23 s"));
    has(&lines, &["round 3 of 5", "measuring loadline, slice 4 of 10", " 42 %  at least 3"]);
    has(&lines, &["rate", "p99", "wrong", "valid", "server", "load", "backlog", "lag p99"]);
    has(&lines, &["516k/s", "0.98", "84 %", "7", "1/2", "12"]);
    has(
        &lines,
        &["rate of each slice, up to 516k/s", "█", "30.0 µs", "latency", "CPU now: loadline 0.97"],
    );
    has(&lines, &["generator 1.02  cores ▕█▄ ▏", "loadline limit so far: one server thread"]);
    has(&lines, &["memcached: not all trials count: wrong answers", "24 rounds would show"]);
}

#[test]
fn data_that_are_prepared_have_a_bar_of_their_own() {
    let mut state = begun(&["loadline"]);
    let event = RunEvent::Preparing { target: "loadline", begun: 2_500, parts: 10_000 };
    fold(&mut state, &event);
    let bar = format!("{}{}  25 %  of the preparation", "█".repeat(10), "░".repeat(30));
    has(&drawn(&state, 80, 24, false), &["preparing loadline, 2,500 of 10,000 parts", &bar]);
    place(&mut state, "16 conns", 1, "measuring loadline, slice 1 of 10");
    has(&drawn(&state, 80, 24, false), &[&format!("{}   0 %", "░".repeat(40))]);
}

#[test]
fn a_small_terminal_shows_what_matters_most() {
    let lines = drawn(&running(), 40, 12, false);
    has(
        &lines,
        &["Cache: reads under load", "42 %", "rate", "p99", "wrong", "loadline", "memcached"],
    );
    has(&lines, &["CPU now", "limit so far", "not all trials count"]);
}

#[test]
fn a_long_slice_moves_while_it_is_measured_and_counts_once_when_it_is_over() {
    let mut state = begun(&["ours"]);
    let second = |second, operations| Second { second, operations, wrong: 1, ..Second::default() };
    fold(&mut state, &RunEvent::SliceBegins { target: 0, second: 10 });
    passed(&mut state, &[], 11);
    assert!(state.targets[0].rates.is_empty(), "nothing was published: that is no rate");
    // The slice began within second 10, which is no whole second of it.
    passed(&mut state, &[second(10, 300), second(11, 500)], 12);
    passed(&mut state, &[], 13);
    let side = &state.targets[0];
    assert_eq!((&side.rates, side.rate, side.bad.wrong), (&[500.0, 0.0].into(), Some(0.0), 2));
    // The figures of second 12 are published with the next answer.
    passed(&mut state, &[second(12, 40), second(13, 510)], 14);
    assert_eq!(state.targets[0].rates, [500.0, 40.0, 510.0]);
    has(&drawn(&state, 80, 24, false), &["rate of each second, up to 510/s", "510/s"]);
    fold(&mut state, &RunEvent::SliceEnds(&slice(2_000)));
    let side = &state.targets[0];
    assert_eq!((side.rates.len(), side.rate, side.bad.wrong), (3, Some(500.0), 5));
}

#[test]
fn figures_stay_from_round_to_round_and_come_back_with_their_point() {
    let mut state = begun(&["ours"]);
    let status = TargetStatus {
        target: 0,
        validity: Validity::Valid,
        why: Vec::new(),
        counts: Counts { operations: 2_000, ..Counts::default() },
        rate_ns: 4_000_000_000,
        primary: None,
        p50_p99_ns: Some((30_000, 70_000)),
        busy: None,
        limit: None,
    };
    place(&mut state, "small", 1, "measuring ours, slice 1 of 1");
    fold(&mut state, &RunEvent::SliceEnds(&slice(2_000)));
    state.targets[0].latency.record(50_000).expect("in its bounds");
    fold(&mut state, &RunEvent::RoundEnds(&[status]));
    place(&mut state, "small", 2, "starting ours");
    has(&drawn(&state, 80, 24, false), &["500/s", "50.0 µs"]);
    place(&mut state, "large", 1, "starting ours");
    let lines = drawn(&state, 80, 24, false).join("\n");
    assert!(!lines.contains("50.0 µs") && !lines.contains("70.0 µs"), "of another point: {lines}");
    // No slice of this round is over, so these are the figures of the earlier one.
    place(&mut state, "small", 2, "starting ours");
    has(&drawn(&state, 80, 24, false), &["500/s", "70.0 µs", "30.0 µs"]);
}

#[test]
fn nothing_breaks_the_view() {
    let names: Vec<String> = (0..12).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
    let mut state = begun(&names);
    for (n, side) in state.targets.iter_mut().enumerate() {
        side.name = format!("{}\u{1b}[2J目標{n}", "long".repeat(n));
    }
    for size in [(1, 1), (2, 40), (400, 2), (80, 24), (300, 100)] {
        drawn(&state, size.0, size.1, true);
    }
    place(&mut state, &"wide 目標 \u{7} ".repeat(40), u32::MAX, "a line\nand another\ttab");
    state.done = f64::NAN;
    for (place, side) in state.targets.iter_mut().enumerate() {
        side.rates.extend([0.0, f64::INFINITY, f64::NAN, 1e300, -1.0]);
        side.latency.record_n(60_000_000_000, u64::MAX / 4).expect("in its bounds");
        side.latency.record(1).expect("in its bounds");
        side.bad.wrong = u64::MAX;
        side.bad.missing = u64::MAX;
        side.backlog = Some(u64::MAX);
        side.server = Some([f64::NAN, f64::INFINITY, -1.0, 1e300][place % 4]);
        (side.busy, side.now) = (side.server, side.server);
        side.limit = Some("\u{1b}[31m".repeat(99));
        side.reason = Some(String::new());
    }
    state.cores = (0..500).map(|cpu| (cpu, f64::from(cpu as u32) - 100.0)).collect();
    for n in 0..1_000 {
        fold(&mut state, &RunEvent::Note(&format!("said {n}")));
    }
    for size in [(1, 1), (2, 40), (400, 2), (40, 12), (80, 24), (300, 100)] {
        let lines = drawn(&state, size.0, size.1, true);
        assert!(!lines.concat().contains(char::is_control), "an escape came through");
    }
}
