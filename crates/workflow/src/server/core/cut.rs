//! What clients of this program's own protocol take: the tree down to some level, and bodies of
//! nodes, whole or what has changed of them.

use super::parts::Told;
use super::text;
use crate::binary;
use crate::definition::print_cut;
use crate::model::{Marks, NodeId, Snapshot, Tree};
use crate::protocol::{Encoding, Header, Reply, write_own};

/// Answers a request that has a header.
pub(super) fn cut(tree: &Tree, header: &Header) -> Told {
    let Header { encoding, portions, .. } = header;
    match tree.wanted(portions) {
        Err(path) => Told::Reply(Reply::Error(text::no_node(&path))),
        Ok(wanted) => {
            let (snapshot, encoding) = (tree.snapshot(), *encoding);
            Told::Cut(Box::new(move |out| {
                let has_server_state = wanted.has_server_state();
                let (cut, marks) = wanted.cut(&snapshot);
                write_own(out, encoding, |out| match encoding {
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
                });
                has_server_state || has_news(&cut, &marks)
            }))
        }
    }
}

/// Whether a client lacked something of what is cut out, and not only the way to it.
fn has_news(cut: &Snapshot, marks: &Marks) -> bool {
    let is_bare = |id: &NodeId| marks.get(id).is_some_and(|mark| mark.is_bare);
    !cut.walk(NodeId::ROOT).all(|id| is_bare(&id))
}
