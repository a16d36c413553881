//! Services that are added without a line in `load` or `lab`: the examples of
//! docs/adding-a-service.md, each run with its suite.

use std::path::Path;

use findings::Summary;

#[path = "../../examples/shared/mod.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod shared;

#[path = "../../examples/tree.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod tree;

#[path = "../../examples/intervals.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod intervals;

fn run(service: &'static ::load::Service, suite: &str) -> Summary {
    let folder = tempfile::tempdir().expect("a folder");
    let exe = Path::new(env!("CARGO_BIN_EXE_loadline"));
    shared::run(service, suite, exe, folder.path()).expect("a run")
}

fn check(summary: &Summary) {
    for trial in &summary.trials {
        let row = &trial.row;
        assert_eq!((row.wrong, row.missing), (0, 0), "{:?}", row.reason);
        assert!(row.operations > 100, "{}", row.operations);
    }
}

#[test]
fn a_tree_whose_answers_depend_on_the_order_of_operations() {
    check(&run(&tree::SERVICE, include_str!("../../examples/tree.toml")));
}

#[test]
fn intervals_that_are_written_in_bulk_and_found_at_a_time() {
    check(&run(&intervals::SERVICE, include_str!("../../examples/intervals.toml")));
}
