//! A tree in this program's binary form: texts that nodes share are written once and then by their
//! number, or each apart.

use std::io;
use std::time::Instant;

use super::peak::Peak;
use super::site::{Figure, Site, median_ns};
use crate::binary;
use crate::definition::{Style, print};
use crate::model::{Marks, Memory};

/// How shared texts are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Texts {
    /// Once, then by their number.
    Once,
    /// Each time.
    Apart,
}

/// Writes and reads it, and compares what is read.
pub(super) fn measure(site: &Site, texts: Texts) -> io::Result<Vec<Figure>> {
    let (tree, none) = (site.tree()?, Marks::new());
    let (mut written, mut read) = (Vec::new(), Vec::new());
    let (mut bytes, mut tree_bytes, mut peak_bytes) = (0, 0, None);
    for number in 0..site.times {
        let mut out = Vec::with_capacity(bytes);
        let peak = Peak::begin();
        let begun = Instant::now();
        let take = &mut |piece: &[u8]| out.extend_from_slice(piece);
        match texts {
            Texts::Once => binary::write(&tree, &none, true, take),
            Texts::Apart => binary::write_apart(&tree, take),
        }
        written.push(begun.elapsed());
        bytes = out.len();
        let begun = Instant::now();
        let again = binary::read(&out).map_err(io::Error::other)?.tree;
        read.push(begun.elapsed());
        peak_bytes = peak_bytes.max(peak.and_then(|peak| peak.bytes()));
        if number == 0 {
            tree_bytes = Memory::of(&again).total();
            if print(&again, Style::Migrate, false) != print(&tree, Style::Migrate, false) {
                return Err(io::Error::other("what is written is read as another tree"));
            }
        }
    }
    let figures = [
        ("write_ns", median_ns(written)),
        ("read_ns", median_ns(read)),
        ("written_bytes", bytes as u64),
        ("tree_bytes", tree_bytes as u64),
    ];
    let peak_bytes = peak_bytes.map(|bytes| ("more_bytes", bytes));
    Ok(figures.into_iter().chain(peak_bytes).collect())
}
