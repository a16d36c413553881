//! The command from outside: one file per theme.

mod capacity;
pub(crate) mod common;
mod compare;
mod conditions;
mod conditions_data;
mod counters;
mod early_end;
mod figures;
mod first_questions;
mod history;
mod http;
mod in_process;
pub(crate) mod ledgers;
mod live;
mod load;
mod mistakes;
mod output;
mod programs;
mod records;
mod rpc;
mod run;
mod shell;
mod targets;
mod teaching;
mod toys;
mod ui;
mod workflow;

/// The page that shows how a service is added shows what is compiled.
#[test]
fn the_page_about_adding_a_service_shows_the_example_as_it_is() {
    let page = include_str!("../../../../docs/adding-a-service.md");
    let example = include_str!("../../examples/tree.rs");
    assert!(page.contains(example), "copy examples/tree.rs into docs/adding-a-service.md");
    assert!(example.lines().count() < 120, "it is meant to be short");
}
