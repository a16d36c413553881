//! Nodes as ecFlow's clients take them where children were added or deleted: all of a parent's.

use super::archive::Archive;
use super::attributes::{duration, states_of, versioned};
use crate::model::{Attribute, Displayed, Duration, Kind, Node, NodeId, Snapshot, State};

/// The children of a node, in one state of the tree. Equal where the node is the same.
#[derive(Clone, Debug)]
pub struct Children {
    /// The state.
    pub tree: Snapshot,
    /// The node.
    pub of: NodeId,
}

impl PartialEq for Children {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Children {
    pub(super) fn write(&self, archive: &mut Archive<'_>) {
        children(archive, "children_", &self.tree, self.of);
    }

    /// Whether they are aliases.
    pub(super) fn are_aliases(&self) -> bool {
        self.tree.node(self.of).kind == Kind::Task
    }
}

fn children(archive: &mut Archive<'_>, name: &str, tree: &Snapshot, of: NodeId) {
    archive.objects(name, tree.children(of), |archive, id| match tree.node(id).kind {
        Kind::Alias => archive.known("Alias", |archive| submittable(archive, tree, id)),
        Kind::Task => archive.polymorphic("Task", |archive| {
            submittable(archive, tree, id);
            let number = tree.node(id).job.as_ref().map_or(0, |job| job.alias_no);
            if number != 0 {
                archive.integer("alias_no_", number.into());
            }
            if tree.node(id).first_child.is_some() {
                children(archive, "aliases_", tree, id);
            }
        }),
        _ => archive.polymorphic("Family", |archive| {
            archive.class("value0", "NodeContainer", |archive| {
                archive.class("value0", "Node", |archive| node(archive, tree.node(id)));
                children(archive, "nodes_", tree, id);
            });
        }),
    });
}

fn submittable(archive: &mut Archive<'_>, tree: &Snapshot, id: NodeId) {
    archive.class("value0", "Submittable", |archive| {
        archive.class("value0", "Node", |archive| node(archive, tree.node(id)));
        let job = tree.node(id).job();
        for (name, text) in
            [("paswd_", &job.password), ("rid_", &job.rid), ("abr_", &job.abort_reason)]
        {
            if !text.is_empty() {
                archive.text(name, text);
            }
        }
        if job.try_no != 0 {
            archive.integer("tryNo_", job.try_no.into());
        }
    });
}

/// What a node has beside its children, as far as it isn't the default.
fn node(archive: &mut Archive<'_>, node: &Node) {
    archive.text("n_", &node.name);
    // ecFlow leaves out since when a node is unknown, so that its followers don't know it.
    if node.state != State::Unknown || node.since != Duration::ZERO {
        archive.object("st_", |archive| {
            archive.object("first", |archive| archive.integer("st_", node.state as i64));
            duration(archive, "second", node.since);
        });
    }
    if node.is_suspended {
        archive.flag("suspended_", true);
    }
    if node.default != Displayed::Queued {
        archive.object("d_st_", |archive| archive.integer("st_", node.default as i64));
    }
    let all = |archive: &mut Archive<'_>, name: &str, is_it: fn(&Attribute) -> bool| {
        let found: Vec<&Attribute> = node.attributes.iter().filter(|one| is_it(one)).collect();
        if !found.is_empty() {
            archive.objects(name, found, versioned);
        }
    };
    let one = |archive: &mut Archive<'_>, name: &str, is_it: fn(&Attribute) -> bool| {
        if let Some(found) = node.attributes.iter().find(|one| is_it(one)) {
            archive.owned(name, |archive| versioned(archive, found));
        }
    };
    all(archive, "vars_", |one| matches!(one, Attribute::Variable(_)));
    one(archive, "c_expr_", |one| matches!(one, Attribute::Complete(_)));
    one(archive, "t_expr_", |one| matches!(one, Attribute::Trigger(_)));
    all(archive, "meters_", |one| matches!(one, Attribute::Meter(_)));
    all(archive, "events_", |one| matches!(one, Attribute::Event(_)));
    all(archive, "labels_", |one| matches!(one, Attribute::Label(_)));
    all(archive, "times_", |one| matches!(one, Attribute::Time(_)));
    all(archive, "todays_", |one| matches!(one, Attribute::Today(_)));
    all(archive, "crons_", |one| matches!(one, Attribute::Cron(_)));
    all(archive, "dates_", |one| matches!(one, Attribute::Date(_)));
    all(archive, "days_", |one| matches!(one, Attribute::Day(_)));
    one(archive, "late_", |one| matches!(one, Attribute::Late(_)));
    rare(archive, node);
    if let Some(repeat) = node.attributes.iter().find(|one| matches!(one, Attribute::Repeat(_))) {
        archive.object("repeat_", |archive| versioned(archive, repeat));
    }
    let limits = node.attributes.iter().filter(|one| matches!(one, Attribute::Limit(_)));
    let limits: Vec<&Attribute> = limits.collect();
    if !limits.is_empty() {
        archive.objects("limits_", limits, |archive, limit| {
            archive.shared(|archive| versioned(archive, limit));
        });
    }
    if node.attributes.iter().any(|one| matches!(one, Attribute::InLimit(_))) {
        archive.object("inLimitMgr_", |archive| {
            all(archive, "vec_", |one| matches!(one, Attribute::InLimit(_)));
        });
    }
    if node.flags.0 != 0 {
        archive.class("flag_", "Flag", |archive| archive.integer("flag_", node.flags.0.into()));
    }
    one(archive, "auto_cancel_", |one| matches!(one, Attribute::AutoCancel(_)));
    one(archive, "auto_archive_", |one| matches!(one, Attribute::AutoArchive(_)));
    one(archive, "auto_restore_", |one| matches!(one, Attribute::AutoRestore(_)));
}

/// The attributes that few nodes have.
fn rare(archive: &mut Archive<'_>, node: &Node) {
    let of = |is_it: fn(&Attribute) -> bool| -> Vec<&Attribute> {
        node.attributes.iter().filter(|one| is_it(one)).collect()
    };
    let zombies = of(|one| matches!(one, Attribute::Zombie(_)));
    let verifies = node.attributes.iter().filter_map(|one| match one {
        Attribute::Verify(verify) => Some(*verify),
        _ => None,
    });
    let verifies: Vec<_> = verifies.collect();
    let queues = of(|one| matches!(one, Attribute::Queue(_)));
    let generics = of(|one| matches!(one, Attribute::Generic(_)));
    if [zombies.len(), verifies.len(), queues.len(), generics.len()] == [0; 4] {
        return;
    }
    archive.owned("misc_attrs_", |archive| {
        archive.version("MiscAttrs");
        if !zombies.is_empty() {
            archive.objects("zombies_", zombies, versioned);
        }
        if !verifies.is_empty() {
            states_of(archive, &verifies);
        }
        if !queues.is_empty() {
            archive.objects("queues_", queues, versioned);
        }
        if !generics.is_empty() {
            archive.objects("generics_", generics, versioned);
        }
    });
}
