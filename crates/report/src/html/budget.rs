//! The byte budget of a page. Every part of a page is made within a share of it, and what doesn't
//! fit is named with the command that shows it.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};

/// Budget of a text of unknown length inside a line: names, labels, reasons.
pub(super) const CLIPPED_BYTES: usize = 400;

/// Budget on a page, in bytes.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn of(bytes: usize) -> Budget {
        Budget { left: bytes }
    }

    /// The bytes left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The rest, but no more than `most`, as the budget of a part.
    pub(super) fn share(&self, most: usize) -> Budget {
        Budget { left: self.left.min(most) }
    }

    /// Books the part if it fits.
    pub(super) fn fits(&mut self, part: &Markup) -> bool {
        let fits = part.0.len() <= self.left;
        if fits {
            self.left -= part.0.len();
        }
        fits
    }

    /// The part if it fits, or else this sentence about it, or else nothing.
    pub(super) fn settle(&mut self, part: Markup, otherwise: &str) -> Markup {
        if self.fits(&part) {
            return part;
        }
        let said = html! { p.note { (otherwise) } };
        if self.fits(&said) { said } else { Markup::default() }
    }

    /// As many parts as fit, in order, and the number left out.
    pub(super) fn list(&mut self, parts: impl IntoIterator<Item = Markup>) -> (Markup, usize) {
        let mut out = String::new();
        let mut left_out = 0;
        for part in parts {
            // Everything after the first that doesn't fit is left out as well, even if it would
            // fit: a list with holes would be read as whole.
            if left_out == 0 && self.fits(&part) {
                out.push_str(&part.0);
            } else {
                left_out += 1;
            }
        }
        (PreEscaped(out), left_out)
    }
}

/// The longest prefix of a text that takes at most `bytes` on a page, where some characters take
/// several.
pub(super) fn fit(text: &str, bytes: usize) -> Cow<'_, str> {
    let size = |letter: char| match letter {
        '&' => 5,
        '<' | '>' => 4,
        '"' => 6,
        other => other.len_utf8(),
    };
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        used += size(letter);
        if used > bytes {
            return Cow::Owned(format!("{}…", &text[..at]));
        }
    }
    Cow::Borrowed(text)
}

/// A text of unknown length inside a line, cut to [`CLIPPED_BYTES`].
pub(super) fn clipped(text: &str) -> Cow<'_, str> {
    fit(text, CLIPPED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted_and_nothing_after_it_is_shown() {
        let part = |text: &str| html! { p { (text) } };
        let mut budget = Budget::of(20);
        let (shown, left_out) =
            budget.list(["one", "a text that is too long for it", "two"].map(part));
        assert_eq!((shown.0.as_str(), left_out), ("<p>one</p>", 2));
        assert_eq!(budget.settle(part("far too long a part"), "").0, "");
    }

    #[test]
    fn a_text_is_cut_by_what_it_takes_on_the_page() {
        assert_eq!(fit("a<b", 6), "a<b");
        assert_eq!(fit("a<b", 5), "a<…");
        assert_eq!(fit("äöü", 4), "äö…");
        let shown = html! { (fit(&"\"&<>".repeat(500), 1000)) };
        assert!((990..=1000 + "…".len()).contains(&shown.0.len()), "{}", shown.0.len());
    }
}
