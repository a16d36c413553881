//! `trigger` and `complete`: their lines, parts and continuations.

use super::check::Place;
use super::error::{Read, fault, short};
use super::expression::hold_terms;
use super::line::{Words, split};
use super::reader::{Pending, Reader};
use crate::model::{Attribute, Condition, Joint, Part, Text};

impl<'a> Reader<'a> {
    /// `trigger` and `complete`, with their continuation lines.
    pub(super) fn condition(&mut self, line: &'a str, words: &mut Vec<&'a str>) -> Read<()> {
        let is_trigger = words[0] == "trigger";
        let joint = match words.get(1).copied() {
            Some("-a") => Joint::And,
            Some("-o") => Joint::Or,
            _ => Joint::First,
        };
        let from = if joint == Joint::First { 1 } else { 2 };
        let is_continued = |words: &[&str]| words.last().is_some_and(|word| word.ends_with('\\'));
        let mut text = std::mem::take(&mut self.scratch.text);
        let mut is_free = false;
        // Not shared with other texts: most are of one node only, and of the others the whole
        // expression is.
        let part = if is_continued(words) {
            let mut all: Vec<&str> = words[from..].to_vec();
            let mut more = Vec::new();
            while let Some(line) = self.lines.next() {
                split(line, &mut more);
                all.extend(&more);
                if !is_continued(&more) {
                    break;
                }
            }
            text.clear();
            for word in all.iter().map(|word| word.strip_suffix('\\').unwrap_or(word)) {
                if word.starts_with('#') {
                    break;
                }
                if !text.is_empty() && !word.is_empty() {
                    text.push(' ');
                }
                text.push_str(word);
            }
            Text::from(text.as_str())
        } else {
            let of = Words { line, all: words };
            is_free = self.style.has_state() && of.state(3).contains(&"free");
            Text::from(of.join(from, &mut text))
        };
        self.scratch.text = text;
        if part.is_empty() {
            return Err(fault(format!("{} has no expression", words[0]), "write one behind it"));
        }
        self.add_part(is_trigger, Part { joint, text: part }, is_free)
    }

    fn add_part(&mut self, is_trigger: bool, part: Part, is_free: bool) -> Read<()> {
        let rank = if is_trigger { 2 } else { 1 };
        let line = self.lines.number;
        let place = usize::from(is_trigger);
        if self.scratch.conditions[place].is_none() {
            // One that was there before the node's children.
            let at = self.scratch.attributes.iter().position(|item| item.rank() == rank);
            if let Some(at) = at
                && let Attribute::Trigger(known) | Attribute::Complete(known) =
                    self.scratch.remove(at)
            {
                let (parts, free) = (known.expression.parts.clone(), known.free);
                self.scratch.conditions[place] = Some(Pending { parts, free, line });
            }
        }
        let pending = &mut self.scratch.conditions[place];
        match (pending.as_mut(), part.joint) {
            (None, Joint::First) => {
                *pending = Some(Pending { parts: vec![part], free: is_free, line });
                Ok(())
            }
            (None, _) => Err(fault(
                "-a and -o join an expression to one before it, and there is none",
                "drop -a or -o from the first",
            )),
            (Some(_), Joint::First) => Err(fault(
                "a second expression of its kind",
                "join it to the first with -a (and) or -o (or)",
            )),
            (Some(pending), _) => {
                pending.parts.push(part);
                pending.free |= is_free;
                Ok(())
            }
        }
    }

    /// Makes an attribute of the parts of a trigger (or complete) expression.
    pub(super) fn compile(&mut self, is_trigger: bool, pending: Pending) -> Read<()> {
        let Pending { parts, free, line } = pending;
        let compiled = self.expressions.share(parts, &mut self.tree, self.node);
        let (expression, error) = match compiled {
            Ok((expression, terms)) => {
                let error = hold_terms(terms).err().filter(|_| !self.is_kept);
                (expression, error)
            }
            Err((expression, error)) => (expression, Some(error)),
        };
        if let Some(error) = error {
            let message = format!("expression '{}': {error}", short(&expression.text()));
            let is_too_long = expression.program.is_some();
            let fault = fault(
                message,
                match is_too_long {
                    true => "let it wait for families, or for tasks that wait for parts of it",
                    false => "write such as: a == complete and ../b:meter ge 50",
                },
            );
            // The line of its first part is the author's place.
            let here = std::mem::replace(&mut self.lines.number, line);
            if !self.style.is_persistent() {
                return Err(fault);
            }
            if is_too_long && self.too_long.is_none() {
                self.too_long = Some(self.error(*fault));
            }
            self.lines.number = here;
        }
        let condition = Condition { expression, free };
        if let Some(node) = self.node.filter(|_| !self.style.is_persistent()) {
            let word = if is_trigger { "trigger" } else { "complete" };
            // What is there stays there; what isn't yet is looked for again at the end.
            if super::check::condition(&self.tree, node, word, &condition).is_some() {
                self.places.push(Place { node, word, line });
            }
        }
        self.scratch.push(if is_trigger {
            Attribute::Trigger(condition)
        } else {
            Attribute::Complete(condition)
        })
    }
}
