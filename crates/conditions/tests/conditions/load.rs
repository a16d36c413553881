//! The workload of the lab, at a server.

use std::sync::Arc;

use conditions::load::{NOPAYLOADDB, SERVICE};
use load::{Caller, Op, Outcome, Part, Speaks, Workload};
use wire::Address;

use crate::served::serve;

pub(crate) fn workload(text: &str, seed: u64) -> Result<Arc<dyn Workload>, String> {
    let table = text.parse().expect("TOML");
    let part = Part { service: "conditions", table: &table, folder: "".as_ref(), seed };
    (SERVICE.read)(&part).map_err(|error| format!("{}: {error}", error.key))
}

pub(crate) const SMALL: &str = "folders = 3\nchannels = 4\nintervals = 5\nfields = 2\nbulk = 3\n";

/// Does an operation, by its name.
pub(crate) fn call(slot: &mut dyn Caller, operation: &str, what: u64) -> Outcome {
    let all = workload(SMALL, 1).expect("a workload");
    let operation = all.operations().iter().position(|one| one.name == operation);
    slot.call(Op { operation: operation.expect("an operation"), what }).expect("an answer")
}

/// Prepares a target of this workload through a slot, and has every operation answered rightly.
pub(crate) fn holds(made: &dyn Workload, slot: &mut dyn Caller) {
    for part in 0..made.preparation().parts {
        assert_eq!(slot.prepare(part).expect("an answer").answers, 1);
    }
    reads(slot);
    assert_eq!(call(slot, "find", 0).misses, 1);
    for (operation, objects) in [("insert", 1), ("insert-bulk", 3), ("insert", 1)] {
        let outcome = call(slot, operation, 0);
        assert_eq!((outcome.answers, outcome.wrong, outcome.refused), (objects, 0, 0));
        let found = call(slot, "find", 0);
        assert_eq!((found.answers, found.wrong, found.misses), (1, 0, 0), "{found:?}");
    }
    for _ in 0..2 {
        let outcome = call(slot, "append", 0);
        assert_eq!((outcome.answers, outcome.wrong, outcome.refused), (1, 0, 0));
    }
    reads(slot);
    loads(slot);
    reads(slot);
}

/// Has everything loaded anew, twice, and read.
fn loads(slot: &mut dyn Caller) {
    for interval in [4, 0] {
        let outcome = call(slot, "load", interval);
        assert_eq!((outcome.answers, outcome.wrong, outcome.refused), (1, 0, 0), "{outcome:?}");
        assert!(outcome.took.expect("a time").elapsed_ns > 0);
        let [(name, bytes)] = &outcome.figures[..] else { panic!("one figure: {outcome:?}") };
        // 60 objects of 2 floats, in whole pages or blocks.
        assert_eq!(name, "disk_bytes");
        assert!((480.0..1e6).contains(bytes), "{bytes}");
    }
}

/// Has every interval answered rightly by every operation that reads.
fn reads(slot: &mut dyn Caller) {
    for operation in ["slice", "read-folders", "job", "browse"] {
        for interval in 0..5 {
            let outcome = call(slot, operation, interval);
            assert_eq!((outcome.answers, outcome.wrong), (1, 0), "{operation}: {outcome:?}");
            assert!(outcome.took.is_some());
        }
    }
}

/// Prepares long intervals in every tenth channel, and has all answered rightly; without them they
/// are wrong.
pub(crate) fn holds_long(long: &str, open: impl Fn(Arc<dyn Workload>) -> Box<dyn Caller>) {
    let made = workload(&format!("{SMALL}long = \"{long}\"\n"), 7).expect("a workload");
    let mut slot = open(made.clone().begin(&[0]));
    for part in 0..made.preparation().parts {
        assert_eq!(slot.prepare(part).expect("an answer").answers, 1);
    }
    reads(&mut *slot);
    let short = workload(SMALL, 7).expect("a workload").begin(&[0]);
    let finding = call(&mut *open(short), "slice", 4).finding.expect("a wrong answer");
    let received = String::from_utf8(finding.received).expect("text");
    assert!(received.starts_with("folder 2, channels 1..2: valid in ("), "{received}");
}

/// The workload of a scenario of NoPayloadDB.
pub(crate) fn nopayloaddb(scenario: &str, seed: u64) -> Arc<dyn Workload> {
    let table = format!("scenario = \"{scenario}\"").parse().expect("TOML");
    let part = Part { service: "nopayloaddb", table: &table, folder: "".as_ref(), seed };
    (NOPAYLOADDB.read)(&part).expect("a workload")
}

/// Prepares a target of the smallest scenario, and has every moment answered rightly.
pub(crate) fn holds_nopayloaddb(made: &dyn Workload, slot: &mut dyn Caller) {
    for part in 0..made.preparation().parts {
        assert_eq!(slot.prepare(part).expect("an answer").answers, 1);
    }
    for what in 0..10 {
        let outcome = slot.call(Op { operation: 0, what }).expect("an answer");
        assert_eq!((outcome.answers, outcome.wrong), (1, 0), "{outcome:?}");
    }
}

fn slot(workload: Arc<dyn Workload>, at: &Address) -> Box<dyn Caller> {
    workload.caller(&Speaks::plainly(&SERVICE.dialects[0]), at).expect("a client")
}

#[test]
fn what_was_prepared_is_right_and_what_another_seed_prepared_is_not() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = Address::Internet(server.addresses()[0]);
    let made = workload(SMALL, 7).expect("a workload");
    let mut first = slot(made.clone().begin(&[0]), &at);
    holds(&*made, &mut *first);
    for operation in ["slice", "read-folders", "job", "browse"] {
        let outcome = call(&mut *first, operation, 1);
        let (name, ns) = outcome.figures.first().expect("a figure");
        assert_eq!(name, "server_time_ns");
        // The job before has left its connection itself.
        let closed = outcome.figures.get(1).map(|(name, closed)| (&name[..], *closed));
        assert_eq!(closed, (operation == "job").then_some(("closed_while_idle", 0.0)));
        let took = outcome.took.expect("a time").elapsed_ns;
        assert!((0.0..=took as f64).contains(ns), "{ns} of {took}");
    }
    let mut other = slot(workload(SMALL, 8).expect("a workload").begin(&[0]), &at);
    assert_eq!(call(&mut *other, "browse", 1).wrong, 1);
    let finding = call(&mut *other, "slice", 1).finding.expect("a wrong answer");
    let received = String::from_utf8(finding.received).expect("text");
    assert!(received.starts_with("folder 0, channels 0..1: Some(0."), "{received}");
    // The channel is the first slot's: what this one inserts meets what is there, at any time.
    let met = call(&mut *other, "insert", 0);
    assert_eq!((met.refused, met.wrong), (0, 1), "{met:?}");
}

#[test]
fn long_intervals_are_read_wherever_they_lie() {
    for long in ["infinite", "scattered"] {
        let data = tempfile::tempdir().expect("a folder");
        let server = serve(data.path(), None);
        let at = Address::Internet(server.addresses()[0]);
        holds_long(long, |workload| slot(workload, &at));
    }
}

#[test]
fn the_question_of_nopayloaddb_is_answered_as_the_seed_has_it() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = Address::Internet(server.addresses()[0]);
    let spoken = Speaks::plainly(&NOPAYLOADDB.dialects[0]);
    let open = |made: Arc<dyn Workload>| made.caller(&spoken, &at).expect("a client");
    let made = nopayloaddb("tiny", 7);
    holds_nopayloaddb(&*made, &mut *open(made.clone()));
    let mut other = open(nopayloaddb("tiny", 8));
    assert_eq!(other.call(Op { operation: 0, what: 4 }).expect("an answer").wrong, 1);
}

#[test]
fn look_ups_are_right_whether_they_are_new_or_known() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = Address::Internet(server.addresses()[0]);
    let made = workload(&format!("{SMALL}long = \"scattered\"\n"), 7).expect("a workload");
    let mut first = slot(made.clone().begin(&[0]), &at);
    for part in 0..made.preparation().parts {
        assert_eq!(first.prepare(part).expect("an answer").answers, 1);
    }
    for _ in 0..200 {
        let outcome = call(&mut *first, "look-up", 0);
        assert_eq!((outcome.answers, outcome.wrong), (1, 0), "{outcome:?}");
    }
    let mut other = slot(workload(SMALL, 8).expect("a workload").begin(&[0]), &at);
    let finding = call(&mut *other, "look-up", 0).finding.expect("a wrong answer");
    assert!(String::from_utf8(finding.key).expect("text").starts_with("folder "));
}

#[test]
fn jobs_read_the_interval_that_the_suite_names() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = Address::Internet(server.addresses()[0]);
    holds(&*workload(SMALL, 7).expect("a workload"), &mut *slot(workload(SMALL, 7).unwrap(), &at));
    // Of another seed every slice is wrong, and names its interval.
    let read = |since: &str, jobs: usize| -> Vec<String> {
        let workload = workload(&format!("{SMALL}since = {since}\n"), 8).expect("a workload");
        let mut slots = [slot(workload.clone(), &at), slot(workload, &at)];
        let keys = (0..jobs).map(|job| {
            let finding = call(&mut *slots[job % 2], "slice", 3).finding.expect("a wrong answer");
            String::from_utf8(finding.key).expect("text").replace("interval ", "")
        });
        keys.collect()
    };
    assert_eq!(read("\"first\"", 2), ["0", "0"]);
    assert_eq!(read("\"last\"", 2), ["4", "4"]);
    assert_eq!(read("3", 1), ["2"]);
    assert_eq!(read("\"any\"", 1), ["3"]);
    assert_eq!(read("\"next\"", 6), ["0", "1", "2", "3", "4", "0"]);
    let behind = "{ behind = 2, jobs = 2 }";
    assert_eq!(read(behind, 7), ["2", "2", "3", "3", "4", "4", "4"]);
}

#[test]
fn a_workload_that_cannot_be_names_its_key() {
    for (text, said) in [
        (SMALL.replace("folders = 3", "folders = 0"), "workload.folders: folders has to be 1 to"),
        (SMALL.replace("fields", "ints"), "workload.ints: unknown field"),
        (format!("{SMALL}since = \"some\""), "workload.since: since is \"first\", \"last\","),
        (format!("{SMALL}since = 0"), "workload.since: since is \"first\", \"last\","),
        (
            format!("{SMALL}since = {{ behind = 5, jobs = 1 }}"),
            "workload.since: of 5 intervals none",
        ),
        (
            format!("{SMALL}since = {{ behind = 1, jobs = 0 }}"),
            "workload.since: since is \"first\",",
        ),
        (format!("{SMALL}long = \"some\""), "workload.long: unknown variant `some`"),
        ("written_by = \"clients\"".to_owned(), "workload.written_by: unknown variant"),
        ("written_by = \"target\"\nfolders = 1".to_owned(), "workload.folders: unknown field"),
        ("written_by = \"target\"\nunder = \"x\"".to_owned(), "workload.under: \"x\" is no path"),
        (format!("{SMALL}since = 6"), "workload.since: there are 5 intervals, not 6"),
        (
            "folders = 10000\nchannels = 10000\nintervals = 1\nfields = 1000\n".to_owned(),
            "workload.folders: a slice of folders × channels × fields",
        ),
    ] {
        let why = workload(&text, 1).expect_err("refused");
        assert!(why.starts_with(said), "{why}");
    }
}
