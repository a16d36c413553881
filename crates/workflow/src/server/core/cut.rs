//! What clients of this program's own protocol take: the tree down to some level, and bodies of
//! nodes, whole or what has changed of them.

use std::collections::HashMap;

use super::parts::Write;
use super::text;
use crate::binary;
use crate::definition::print_cut;
use crate::model::{Marks, NodeId, Passed, Snapshot, Tree};
use crate::protocol::{Encoding, Header, Reply, write_own, write_passed};

/// Answers a request that has a header.
///
/// # Errors
/// With another answer, when a node isn't there.
pub(super) fn cut(tree: &Tree, header: &Header) -> Result<Write, Reply> {
    let Header { encoding, wants_states, portions, .. } = header;
    match tree.wanted(portions) {
        Err(path) => Err(Reply::Error(text::no_node(&path))),
        Ok(wanted) => {
            let (snapshot, encoding) = (tree.snapshot(), *encoding);
            let known = portions.iter().filter_map(|one| one.known);
            let oldest = known.map(|(state, _)| state).min();
            // A client that has nothing yet has missed nothing.
            let since = |no| tree.passed_since(no);
            let passed = wants_states.then(|| oldest.map(since).unwrap_or_default());
            Ok(Box::new(move |out| {
                let has_server_state = wanted.has_server_state();
                let (cut, marks) = wanted.cut(&snapshot);
                write_own(out, encoding, |out| {
                    if let Some(passed) = passed {
                        write_passed(&placed(passed, &snapshot, (&cut, &marks)), out);
                    }
                    match encoding {
                        Encoding::Text => {
                            print_cut(&cut, &marks, (text::NET, false), &mut |piece| {
                                out.extend_from_slice(piece.as_bytes());
                            });
                        }
                        Encoding::Binary => {
                            binary::write(&cut, &marks, false, &mut |piece| {
                                out.extend_from_slice(piece);
                            });
                        }
                    }
                });
                has_server_state || has_news(&cut, &marks)
            }))
        }
    }
}

fn is_bare(marks: &Marks, id: NodeId) -> bool {
    marks.get(&id).is_some_and(|mark| mark.is_bare)
}

/// Whether a client lacked something of what is cut out, and not only the way to it.
fn has_news(cut: &Snapshot, marks: &Marks) -> bool {
    !cut.walk(NodeId::ROOT).all(|id| is_bare(marks, id))
}

/// States by the places of their nodes in what is cut out of a tree; those of nodes for which the
/// client has not asked are left out.
fn placed(
    passed: Passed<NodeId>,
    tree: &Snapshot,
    (cut, marks): (&Snapshot, &Marks),
) -> Passed<usize> {
    let Passed { states, missed } = passed;
    if states.is_empty() {
        return Passed { states: Vec::new(), missed };
    }
    let asked = cut.walk(NodeId::ROOT).enumerate().filter(|(_, id)| !is_bare(marks, *id));
    let places: HashMap<NodeId, usize> = asked.map(|(place, id)| (id, place)).collect();
    let mut known: HashMap<NodeId, Option<usize>> = HashMap::new();
    let mut place = |id: NodeId| {
        let found = || cut.find(&tree.path(id)).and_then(|id| places.get(&id).copied());
        *known.entry(id).or_insert_with(found)
    };
    let states = states.into_iter().filter_map(|(id, state)| Some((place(id)?, state))).collect();
    Passed { states, missed }
}
