//! Groups: records whose fields are other records. A put into a group changes all of its records
//! or none, and is one event for each of its subscribers.
//!
//! A group holds what its records hold, in versions of its own, so it is read, filtered and
//! monitored as any record is; arrays are shared.

use std::sync::{Arc, Weak};

use super::Time;
use super::error::GroupError;
use super::membership::{Follower, Gate};
use super::record::{Member, Record};
use crate::protocol::{Field, Item, MAX_DEPTH, MAX_FIELDS, Structure, Type, Value};

impl Record {
    /// A group of these records, each as the field that it is paired with. It takes puts if it is
    /// writable and the records are that the puts are meant for.
    ///
    /// # Errors
    /// When they make no group.
    pub fn group<'a>(
        name: &str,
        records: impl IntoIterator<Item = (&'a str, Arc<Self>)>,
        is_writable: bool,
        gate: &Gate,
        now: Time,
    ) -> Result<Arc<Self>, GroupError> {
        let (mut fields, mut members, mut at) = (Vec::new(), Vec::new(), 1);
        for (field, record) in records {
            if !record.members().is_empty() {
                return Err(GroupError::Nested(Arc::clone(record.name())));
            }
            if record.kind().depth() >= MAX_DEPTH {
                return Err(GroupError::TooDeep(Arc::clone(record.name())));
            }
            fields.push(Field::new(field, record.kind().clone()));
            let width = record.kind().width();
            members.push(Member { at, record });
            at += width;
        }
        let kind = Type::Structure(Structure::new("", fields));
        if kind.size() > MAX_FIELDS {
            return Err(GroupError::TooWide(kind.size()));
        }
        // From here on changes of the records hold the gate.
        for member in &members {
            member.record.bind(gate);
        }
        let passed = gate.pass();
        let mut nodes = vec![Value::Structure];
        for member in &members {
            member.record.read(|held| nodes.extend_from_slice(held));
        }
        let item = Item::of(kind, nodes).expect("a group holds what its records hold");
        let most_bytes = members.iter().map(|one| one.record.most_bytes()).max().unwrap_or(0);
        let group = Self::with(name, item, is_writable, most_bytes, now, members);
        for member in group.members() {
            let group: Weak<dyn Follower> = Arc::<Self>::downgrade(&group);
            member.record.bind(gate).join(member.at, group);
        }
        drop(passed);
        Ok(group)
    }
}
