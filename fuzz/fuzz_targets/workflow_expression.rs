//! Any text as an expression: it is refused with a place in it, or it can be evaluated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::definition::parse_expression;
use workflow::model::{From, NodeId, Snapshot, Texts};

fuzz_target!(|text: &str| {
    let mut texts = Texts::default();
    match parse_expression(text, &mut texts) {
        Ok(program) => {
            let tree = Snapshot::default();
            program.holds(&From { tree: &tree, node: NodeId::ROOT });
        }
        Err(error) => assert!(error.at <= text.len() && !error.expected.is_empty()),
    }
});
