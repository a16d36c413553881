//! Counters for Prometheus: what the owner has counted, and the size of the tree. Control plane.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use service::metrics::{Kind, Metrics};

use super::message::{Look, Message};
use super::web::KINDS;
use crate::model::{Attribute, Node, NodeId, Snapshot, State};

/// The longest that the owner is waited for.
const WAIT: Duration = Duration::from_secs(5);

/// Adds what there is of a server; nothing of one that is stopping.
pub(super) fn add(page: &mut Metrics, owner: &Sender<Message>) {
    let (send, receive) = channel();
    let answer = move |look| {
        // Whoever asked may have given up.
        let _ = send.send(look);
    };
    let _ = owner.send(Message::Look(None, Box::new(answer)));
    let Ok(look) = receive.recv_timeout(WAIT) else { return };
    add_counts(page, &look);
    add_tree(page, &look.snapshot);
}

fn add_counts(page: &mut Metrics, look: &Look) {
    let counts = &look.counts;
    for (kind, count) in KINDS.iter().zip(&counts.requests) {
        let name = format!("requests_{kind}");
        let help = format!("Requests of the kind {kind}.");
        page.add(Kind::Counter, &name, &help, u64::try_from(*count).unwrap_or(0));
    }
    for (kind, name, help, value) in [
        (Kind::Counter, "changes", "Changes carried out, of any kind.", counts.changes),
        (Kind::Counter, "journal_groups", "Groups made durable by the journal.", counts.groups),
        (Kind::Gauge, "journal_pending", "Changes that wait for the journal.", counts.pending),
        (Kind::Gauge, "jobs_running", "Commands, such as jobs, that run.", counts.running),
        (Kind::Gauge, "jobs_queued", "Commands that wait to be started.", counts.waiting),
        (Kind::Counter, "checkpoints", "Checkpoints written.", counts.checkpoints),
        (
            Kind::Counter,
            "checkpoint_microseconds",
            "What all checkpoints took, on threads of their own.",
            counts.checkpoints_us,
        ),
        (
            Kind::Gauge,
            "checkpoint_waited_microseconds",
            "The most that commands waited for a checkpoint.",
            counts.waited_us,
        ),
    ] {
        page.add(kind, name, help, value);
    }
}

fn add_tree(page: &mut Metrics, tree: &Snapshot) {
    let mut tasks = [0_u64; State::ALL.len()];
    let (mut nodes, mut bytes) = (0_u64, 0_usize);
    for id in tree.walk(NodeId::ROOT) {
        let node = tree.node(id);
        nodes += 1;
        bytes += size_of::<Node>() + node.attributes.len() * size_of::<Attribute>();
        if node.kind.is_job() {
            tasks[node.state as usize] += 1;
        }
    }
    // Without the server itself.
    page.add(Kind::Gauge, "nodes", "Suites, families, tasks and aliases.", nodes - 1);
    page.add(
        Kind::Gauge,
        "tree_bytes",
        "Memory of nodes and their attributes, without texts, which are shared.",
        bytes as u64,
    );
    for (state, count) in State::ALL.into_iter().zip(tasks) {
        let name = format!("tasks_{}", state.word());
        page.add(Kind::Gauge, &name, &format!("Tasks that are {}.", state.word()), count);
    }
}
