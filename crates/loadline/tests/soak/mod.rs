//! What services have to bear. The cache: starts under immediate load, clients that die in the
//! middle of a word, readers who do not read, memory that is full, too many at once. After all of
//! that its answers are right, its memory has not grown, and no place for a connection is lost.
//! Conditions: jobs that connect, insert and read for as long as is asked. Workflow: crashes at
//! random moments.
//!
//! `make soak` runs the long ones, which are ignored otherwise; a short one of each kind is always
//! run. How long they take: `SOAK_SECONDS`, `SOAK_STARTS`,
//! `SOAK_CRASHES` from `SOAK_SEED`. What came of it is appended to the file `SOAK_RESULTS`, if set.

mod abuse;
mod client;
mod conditions;
mod memory;
mod starts;
mod workflow;

use std::io::Write as _;
use std::time::Duration;

/// A number that the environment may set.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect(name))
}

/// Prints what came of a soak that held, and appends it to the file of results.
fn note(result: &str) {
    println!("{result}");
    let Some(file) = std::env::var_os("SOAK_RESULTS") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.expect("SOAK_RESULTS"), "{result}").expect("SOAK_RESULTS");
}

#[test]
fn a_few_starts_under_immediate_load_answer_rightly_from_the_first_moment() {
    starts::run(8);
}

#[test]
fn half_written_commands_take_no_place_and_leave_no_trace() {
    abuse::half_written();
}

#[test]
fn conditions_that_jobs_insert_and_read_take_no_more_memory_and_descriptors() {
    conditions::run(Duration::from_secs(1), false);
}

#[test]
#[ignore = "takes minutes: make soak; an hour: cargo xtask proof conditions-hour"]
fn conditions_for_as_long_as_is_asked_take_no_more_memory_and_descriptors() {
    conditions::run(Duration::from_secs(setting("SOAK_SECONDS", 240)), true);
}

#[test]
fn workflows_that_crash_under_load_lose_and_invent_nothing() {
    workflow::run(3, 1);
}

#[test]
#[ignore = "takes a minute: make soak"]
fn workflows_that_crash_two_hundred_times_under_load_lose_and_invent_nothing() {
    workflow::run(setting("SOAK_CRASHES", 200), setting("SOAK_SEED", 1));
}

#[test]
#[ignore = "takes a while: make soak"]
fn a_thousand_starts_under_immediate_load_answer_rightly_from_the_first_moment() {
    starts::run(setting("SOAK_STARTS", 1000));
}

#[test]
#[ignore = "takes minutes: make soak"]
fn abused_for_minutes_it_answers_rightly_and_keeps_its_memory_and_its_places() {
    abuse::run(Duration::from_secs(setting("SOAK_SECONDS", 240)));
}

#[test]
#[ignore = "takes a gigabyte of memory and some seconds: make soak"]
fn memory_is_what_was_asked_for_while_the_index_grows_and_when_it_is_full() {
    memory::run();
}

#[test]
#[ignore = "takes a gigabyte of memory and some seconds: make soak"]
fn readers_that_do_not_read_take_little_memory_and_leave_less() {
    memory::readers();
}

#[test]
#[ignore = "takes some seconds and ten thousand connections: make soak"]
fn ten_thousand_idle_connections_that_have_read_a_megabyte_each_take_little_memory() {
    memory::idle();
}
