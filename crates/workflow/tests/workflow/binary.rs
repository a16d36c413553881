//! Trees as binary: what is read again is what was written, and no other bytes do harm.

use workflow::binary::{read, write};
use workflow::definition::{Style, parse, parse_kept, print};
use workflow::model::{Marks, Memory, Snapshot};

use crate::random_definition::{Random, definition};

const STYLES: [Style; 4] = [Style::Defs, Style::State, Style::Net, Style::Migrate];

fn bytes(tree: &Snapshot) -> Vec<u8> {
    let mut out = Vec::new();
    write(tree, &Marks::new(), true, &mut |piece| out.extend_from_slice(piece));
    out
}

#[test]
fn a_tree_in_binary_is_what_its_text_says_and_shorter() {
    let (mut of_texts, mut of_bytes) = (0, 0);
    for seed in 0..300 {
        let text = definition(&mut Random::new(seed), seed % 3 != 0);
        let Ok(parsed) = parse_kept(&text, "x.def") else { continue };
        let bytes = bytes(&parsed.tree);
        let again = read(&bytes).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(again.marks.is_empty(), "seed {seed}");
        for style in STYLES {
            let texts = [&parsed.tree, &again.tree].map(|tree| print(tree, style, false));
            assert_eq!(texts[0], texts[1], "seed {seed}");
        }
        assert_eq!(self::bytes(&again.tree), bytes, "seed {seed}");
        let [was, is] = [&parsed.tree, &again.tree].map(|tree| Memory::of(tree));
        assert_eq!(was.nodes, is.nodes, "seed {seed}");
        assert_eq!(was.attributes, is.attributes, "seed {seed}");
        of_texts += print(&parsed.tree, Style::Migrate, false).len();
        of_bytes += bytes.len();
    }
    assert!(of_bytes * 3 < of_texts * 2, "{of_bytes} bytes of {of_texts} of text");
}

#[test]
fn bytes_that_are_cut_or_changed_are_refused_or_some_tree() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let text = definition(&mut random, true);
        let Ok(parsed) = parse(&text, "x.def") else { continue };
        let whole = bytes(&parsed.tree);
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "seed {seed}: {end} bytes are no tree");
        }
        for _ in 0..4000 {
            let mut spoilt = whole.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(whole.len() as u64) as usize;
                spoilt[at] = random.next() as u8;
            }
            let Ok(read) = read(&spoilt) else { continue };
            for style in STYLES {
                let _ = print(&read.tree, style, true);
            }
        }
    }
}
