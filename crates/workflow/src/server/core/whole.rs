//! The text of the whole tree, made once for all who ask for it before the tree changes: many
//! clients take all anew at the same change.

use super::text;
use crate::model::Tree;
use crate::protocol::{Escaped, Source};

/// The text that was asked for last. It is not the tree, so that it keeps no nodes.
#[derive(Default)]
pub(in crate::server) struct Whole {
    last: Option<(Key, Escaped)>,
    is_used: bool,
}

/// What is another one whenever the text is: the number of requests and the like that have changed
/// something, and for those within a request the tree's own.
type Key = (u64, u32, u32);

impl Whole {
    /// The text of the tree for clients, and one that is no longer kept.
    pub(super) fn of(&mut self, tree: &Tree, change_no: u64) -> (Source, Option<Escaped>) {
        let key = (change_no, tree.state_change_no(), tree.modify_change_no());
        let (escaped, old) = match self.last.take() {
            Some((known, escaped)) if known == key => (escaped, None),
            old => (Escaped::default(), old.map(|(_, escaped)| escaped)),
        };
        self.last = Some((key, Escaped::clone(&escaped)));
        self.is_used = true;
        (text::whole(tree.snapshot(), text::NET, escaped), old)
    }

    /// Whether it was asked for since this was called last.
    pub(in crate::server) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.is_used)
    }

    /// What is kept: dropping it gives much memory back.
    pub(in crate::server) fn forget(&mut self) -> Option<Escaped> {
        self.last.take().map(|(_, escaped)| escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_text_is_made_once_until_something_changes() {
        let text = "suite s\n  task t\nendsuite\n";
        let mut tree = crate::definition::parse(text, "t").expect("a definition").tree;
        let mut whole = Whole::default();
        let made = |source: &Source, expected: bool| {
            let mut is_made = false;
            let text = source.escaped(|text| {
                is_made = true;
                Some(Bytes::from(text))
            });
            assert_eq!(is_made, expected);
            text.expect("there is memory")
        };
        let (first, none) = whole.of(&tree, 1);
        assert!(whole.take_used() && !whole.take_used() && none.is_none());
        let (second, _) = whole.of(&tree, 1);
        let text = made(&first, true);
        assert_eq!(made(&second, false).as_ptr(), text.as_ptr());
        tree.set_change_numbers(7, 0);
        let (third, old) = whole.of(&tree, 1);
        assert!(old.is_some() && made(&third, true) != text, "the numbers are in it");
        let (fourth, _) = whole.of(&tree, 2);
        made(&fourth, true);
        assert!(whole.forget().is_some() && whole.forget().is_none());
    }
}
