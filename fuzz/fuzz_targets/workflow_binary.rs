//! Any bytes as a tree in binary, and any line in front of a request: they are refused, or what is
//! read prints and is written again as what is read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::binary::{read, write};
use workflow::definition::{Style, print_cut};
use workflow::model::{Marks, Snapshot};
use workflow::protocol::{Header, read_own};

fn bytes(tree: &Snapshot, marks: &Marks) -> Vec<u8> {
    let mut out = Vec::new();
    write(tree, marks, true, &mut |piece| out.extend_from_slice(piece));
    out
}

fuzz_target!(|input: &[u8]| {
    let _ = (Header::read(input), read_own(input));
    let Ok(first) = read(input) else { return };
    for style in [Style::Defs, Style::State, Style::Net, Style::Migrate] {
        print_cut(&first.tree, &first.marks, (style, true), &mut |_| {});
    }
    let again = bytes(&first.tree, &first.marks);
    let second = read(&again).expect("what was written is read");
    assert_eq!(bytes(&second.tree, &second.marks), again);
});
