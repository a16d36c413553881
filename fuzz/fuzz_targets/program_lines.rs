//! Any text as the lines that a program prints about its load: they do no harm, and nothing is
//! counted that no line has said.
#![no_main]

use lab::drive::Figure;
use lab::drive::program::{SERVICE, read_lines};
use load::Scenario;
use libfuzzer_sys::fuzz_target;

/// The first line of a program in order.
const BEGIN: &str = "{\"t_ns\": 1000}\n";

fuzz_target!(|data: &[u8]| {
    let Some((how, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let text = if how & 1 == 0 { text.into_owned() } else { format!("{BEGIN}{text}") };
    let text_of = "service = 'program'\noperation = 'request'";
    let scenario = Scenario::parse(text_of, &SERVICE).expect("right");
    let Ok(piece) = read_lines(&scenario, &text) else { return };
    let counts = piece.counts;
    assert!(counts.wrong <= counts.operations && counts.unchecked <= counts.operations);
    let latencies = piece.intervals.iter().filter(|one| one.figure == Figure::Latency);
    let timed = latencies.map(|one| one.histogram.len()).fold(0, u64::saturating_add);
    assert!(timed <= counts.operations.saturating_add(counts.missing));
});
