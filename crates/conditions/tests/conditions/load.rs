//! The workload of the lab, at a server.

use std::sync::Arc;

use conditions::load::SERVICE;
use load::{Caller, Op, Part, Speaks, Workload};
use wire::Address;

use crate::served::serve;

fn workload(text: &str, seed: u64) -> Result<Arc<dyn Workload>, String> {
    let table = text.parse().expect("TOML");
    let part = Part { service: "conditions", table: &table, folder: "".as_ref(), seed };
    (SERVICE.read)(&part).map_err(|error| format!("{}: {error}", error.key))
}

const SMALL: &str = "folders = 3\nchannels = 4\nintervals = 5\nfloats = 2\n";

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
    for part in 0..made.preparation().parts {
        assert_eq!(first.prepare(part).expect("an answer").answers, 1);
    }
    let call = |slot: &mut dyn Caller, operation, what| {
        slot.call(Op { operation, what }).expect("an answer")
    };
    for interval in 0..5 {
        let outcome = call(&mut *first, 0, interval);
        assert_eq!((outcome.answers, outcome.wrong), (1, 0), "{outcome:?}");
        assert!(outcome.took_ns.is_some());
    }
    assert_eq!(call(&mut *first, 2, 0).misses, 1);
    for _ in 0..3 {
        assert_eq!(call(&mut *first, 1, 0).wrong, 0);
        assert_eq!((call(&mut *first, 2, 0).wrong, call(&mut *first, 2, 0).misses), (0, 0));
    }
    let mut other = slot(workload(SMALL, 8).expect("a workload").begin(&[0]), &at);
    let finding = call(&mut *other, 0, 1).finding.expect("a wrong answer");
    let received = String::from_utf8(finding.received).expect("text");
    assert!(received.contains("/load/read/f00000: channel 0: "), "{received}");
    // The channel is the first slot's: what this one inserts meets what is there.
    assert_eq!(call(&mut *other, 1, 0).refused, 1);
}

#[test]
fn a_workload_that_cannot_be_names_its_key() {
    for (text, said) in [
        (SMALL.replace('3', "0"), "workload.folders: folders has to be 1 to 10000, not 0"),
        (SMALL.replace("floats", "ints"), "workload.ints: unknown field"),
        (format!("{SMALL}reads = \"some\""), "workload.reads: unknown variant"),
    ] {
        let why = workload(&text, 1).expect_err("refused");
        assert!(why.starts_with(said), "{why}");
    }
}
