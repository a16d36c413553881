//! The workload of the lab, at a server.

use std::sync::Arc;

use conditions::load::SERVICE;
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
    for operation in ["slice", "read-folders"] {
        for interval in 0..5 {
            let outcome = call(slot, operation, interval);
            assert_eq!((outcome.answers, outcome.wrong), (1, 0), "{operation}: {outcome:?}");
            assert!(outcome.took_ns.is_some());
        }
    }
    assert_eq!(call(slot, "find", 0).misses, 1);
    for (operation, objects) in [("insert", 1), ("insert-bulk", 3), ("insert", 1)] {
        let outcome = call(slot, operation, 0);
        assert_eq!((outcome.answers, outcome.wrong, outcome.refused), (objects, 0, 0));
        let found = call(slot, "find", 0);
        assert_eq!((found.answers, found.wrong, found.misses), (1, 0, 0), "{found:?}");
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
    let mut other = slot(workload(SMALL, 8).expect("a workload").begin(&[0]), &at);
    let finding = call(&mut *other, "slice", 1).finding.expect("a wrong answer");
    let received = String::from_utf8(finding.received).expect("text");
    assert!(received.starts_with("folder 0, channels 0..1: Some(0."), "{received}");
    // The channel is the first slot's: what this one inserts meets what is there.
    assert_eq!(call(&mut *other, "insert", 0).refused, 1);
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
}

#[test]
fn a_workload_that_cannot_be_names_its_key() {
    for (text, said) in [
        (SMALL.replace("folders = 3", "folders = 0"), "workload.folders: folders has to be 1 to"),
        (SMALL.replace("fields", "ints"), "workload.ints: unknown field"),
        (format!("{SMALL}since = \"some\""), "workload.since: since is \"first\", \"last\","),
        (format!("{SMALL}since = 0"), "workload.since: since is \"first\", \"last\","),
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
