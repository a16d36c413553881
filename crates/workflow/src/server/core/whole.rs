//! Long texts of the tree, or of a node, made once for all who ask for them before the tree
//! changes: many clients take all anew at the same change.

use crate::definition::Style;
use crate::model::Tree;
use crate::protocol::Escaped;

/// The most texts that are kept.
const MOST: usize = 16;

/// The texts that were asked for last. They are not the tree, so that they keep no nodes.
#[derive(Default)]
pub(in crate::server) struct Whole {
    key: Key,
    /// By path, of which the empty one is all, and style; the oldest first.
    texts: Vec<(String, Style, Escaped)>,
    is_used: bool,
}

/// What is another one whenever a text is: the number of requests and the like that have changed
/// something, and for those within a request the tree's own.
type Key = (u64, u32, u32);

impl Whole {
    /// The text of a node for clients, made or still to be made, and those no longer kept.
    pub(super) fn of(
        &mut self,
        tree: &Tree,
        change_no: u64,
        (path, style): (&str, Style),
    ) -> (Escaped, Vec<Escaped>) {
        let key = (change_no, tree.state_change_no(), tree.modify_change_no());
        self.is_used = true;
        let mut old = if self.key == key { Vec::new() } else { self.forget() };
        self.key = key;
        let is_it = |(of, known, _): &&(String, Style, Escaped)| of == path && *known == style;
        if let Some((_, _, escaped)) = self.texts.iter().find(is_it) {
            return (Escaped::clone(escaped), old);
        }
        if self.texts.len() >= MOST {
            old.push(self.texts.remove(0).2);
        }
        let escaped = Escaped::default();
        self.texts.push((path.to_owned(), style, Escaped::clone(&escaped)));
        (escaped, old)
    }

    /// Whether one was asked for since this was called last.
    pub(in crate::server) fn take_used(&mut self) -> bool {
        std::mem::take(&mut self.is_used)
    }

    /// What is kept: dropping it gives much memory back.
    pub(in crate::server) fn forget(&mut self) -> Vec<Escaped> {
        std::mem::take(&mut self.texts).into_iter().map(|(_, _, escaped)| escaped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_text_is_kept_until_something_changes() {
        let text = "suite s\n  task t\nendsuite\n";
        let mut tree = crate::definition::parse(text, "t").expect("a definition").tree;
        let mut whole = Whole::default();
        let net = ("", Style::Net);
        let (first, none) = whole.of(&tree, 1, net);
        assert!(whole.take_used() && !whole.take_used() && none.is_empty());
        assert!(Arc::ptr_eq(&first, &whole.of(&tree, 1, net).0));
        for other in [("", Style::Migrate), ("/s", Style::Net)] {
            let (escaped, old) = whole.of(&tree, 1, other);
            assert!(old.is_empty() && !Arc::ptr_eq(&first, &escaped));
            assert!(Arc::ptr_eq(&escaped, &whole.of(&tree, 1, other).0));
        }
        tree.set_change_numbers(7, 0);
        let (third, old) = whole.of(&tree, 1, net);
        assert!(old.len() == 3 && !Arc::ptr_eq(&first, &third), "the numbers are in it");
        let (fourth, old) = whole.of(&tree, 2, net);
        assert!(old.len() == 1 && !Arc::ptr_eq(&third, &fourth));
        let all = (0..MOST).map(|at| whole.of(&tree, 2, (&format!("/{at}"), Style::Net)).1.len());
        assert_eq!(all.sum::<usize>(), 1, "the oldest makes room");
        assert!(whole.forget().len() == MOST && whole.forget().is_empty());
    }
}
