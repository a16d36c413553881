//! Expressions that are shared while a definition is read.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::expression::{ExpressionError, program};
use crate::model::{Attribute, Expression, NodeId, Part, Step, Tree};

/// How many expressions are remembered: to share them saves a twentieth of a large tree's memory,
/// and no time (`workflow-ladder-triggers`).
pub(crate) const RECENT: usize = 1 << 12;

/// Expressions met lately: nodes that state the same one share it. Each has one place by the hash
/// of its first part, which the next one there takes over, as of the texts of a tree. What lies
/// there is the node that has stated it: most are stated once, and one that is taken over would
/// have to be looked at once more, to count who refers to it.
pub(super) struct Expressions {
    /// Made for the first one: most texts that are read have none.
    places: Vec<(u64, Option<NodeId>)>,
    /// How many there are; with none each expression is parsed.
    count: usize,
    hasher: DefaultHashBuilder,
    /// Room for the steps of the one that is being read.
    steps: Vec<Step>,
}

/// An expression that doesn't hold ever, and why.
pub(super) type Unreadable = (Arc<Expression>, ExpressionError);

impl Expressions {
    /// None met yet, of which as many will be remembered.
    pub(super) fn remembering(count: usize) -> Self {
        Self { places: Vec::new(), count, hasher: Default::default(), steps: Vec::new() }
    }

    /// The expression of these parts, which this node states, and the most terms that one has; 0
    /// where another node states it, too.
    pub(super) fn share(
        &mut self,
        parts: Vec<Part>,
        tree: &mut Tree,
        node: Option<NodeId>,
    ) -> Result<(Arc<Expression>, usize), Unreadable> {
        if let Some(stated) = self.met(&parts, node).and_then(|id| stated(tree, id, &parts)) {
            return Ok((stated, 0));
        }
        match program(&parts, tree.texts_mut(), &mut self.steps) {
            Ok((program, terms)) => {
                Ok((Arc::new(Expression { parts, program: Some(program) }), terms))
            }
            Err(error) => Err((Arc::new(Expression { parts, program: None }), error)),
        }
    }

    /// The node that lies at the place of these parts, which this one takes over.
    fn met(&mut self, parts: &[Part], node: Option<NodeId>) -> Option<NodeId> {
        if self.places.is_empty() {
            self.places.resize(self.count, (0, None));
        }
        let hash = self.hasher.hash_one(parts.first().map(|part| part.text.as_str()));
        let at = (hash as usize).checked_rem(self.places.len())?;
        let (known, before) = std::mem::replace(self.places.get_mut(at)?, (hash, node));
        before.filter(|_| known == hash)
    }
}

/// The expression of these parts, if a node states it.
fn stated(tree: &Tree, id: NodeId, parts: &[Part]) -> Option<Arc<Expression>> {
    tree.node(id).attributes.iter().find_map(|attribute| match attribute {
        Attribute::Trigger(condition) | Attribute::Complete(condition)
            if condition.expression.parts == parts =>
        {
            Some(Arc::clone(&condition.expression))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::definition::parse;
    use crate::model::{Attribute, Expression, Snapshot};

    fn trigger(tree: &Snapshot, path: &str) -> Arc<Expression> {
        match &*tree.node(tree.find(path).expect("a node")).attributes {
            [Attribute::Trigger(condition)] => Arc::clone(&condition.expression),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nodes_that_state_the_same_share_it_whatever_its_parts() {
        let expressions = |texts: [&str; 3]| {
            let [a, b, c] = texts;
            let text = format!("suite s\n task a\n {a} task b\n {b} task c\n {c}endsuite\n");
            let tree = parse(&text, "x.def").expect("a definition").tree;
            ["/s/a", "/s/b", "/s/c"].map(|path| trigger(&tree, path))
        };
        let and = "trigger a == queued\n trigger -a b == queued\n";
        let or = "trigger a == queued\n trigger -o b == queued\n";
        let [a, b, c] = expressions([and, and, "trigger a == queued\n"]);
        assert!(Arc::ptr_eq(&a, &b) && a != c);
        // They have one place, which the one between takes over.
        let [a, b, c] = expressions([and, or, and]);
        assert!(a != b && a == c && !Arc::ptr_eq(&a, &c));
    }
}
