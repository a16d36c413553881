//! Groups: records whose fields are other records. What is put into a group is taken by all of its
//! records or by none, and is one event for whoever monitors it.
//!
//! A group holds what its records hold, in versions of its own, so it is read, filtered and
//! monitored as any record is; arrays are shared. One gate stands before all changes of records
//! that belong to groups: whoever passes it holds it until every group has followed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::record::{PutError, Record};
use super::{Filters, Time};
use crate::protocol::{Bits, Field, Item, MOST_DEPTH, MOST_FIELDS, Structure, Type, Value};

/// What stands before the changes of all records of one service that belong to groups.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<()>>);

impl Gate {
    fn pass(&self) -> MutexGuard<'_, ()> {
        // It guards nothing of its own that a panic elsewhere could break.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records that make no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// One of them is a group.
    #[error("{0} is a group itself: name its records")]
    Nested(Arc<str>),
    /// They have too many fields for one type.
    #[error("its records have {0} fields in all, and a type has at most {MOST_FIELDS}")]
    TooWide(usize),
    /// One of them is nested as deep as a type may be.
    #[error("{0} is nested too deep to be a part of another record")]
    TooDeep(Arc<str>),
}

/// A record of a group, and where in the group its fields are.
pub(super) struct Member {
    at: usize,
    record: Arc<Record>,
}

/// What ties a record to the groups that it belongs to.
pub(super) struct Bond {
    gate: Gate,
    /// The groups, each with the place of the record's fields.
    groups: Mutex<Vec<(usize, Weak<Record>)>>,
}

impl Bond {
    pub(super) fn pass(&self) -> MutexGuard<'_, ()> {
        self.gate.pass()
    }

    pub(super) fn groups(&self) -> Vec<(usize, Arc<Record>)> {
        let mut all = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, group)| group.upgrade().is_some_and(|group| !group.is_gone()));
        all.iter().filter_map(|(at, group)| Some((*at, group.upgrade()?))).collect()
    }
}

/// A group, and the fields of it that are to become something else.
type Following = (Arc<Record>, Vec<(usize, Value)>);

/// Changes of records that their groups have yet to follow: each group does with one event.
#[derive(Default)]
pub(super) struct Followers(BTreeMap<Arc<str>, Following>);

impl Followers {
    /// Notes what has changed in a record with this bond.
    pub(super) fn note(&mut self, bond: &Bond, changed: &Bits, nodes: &[Value]) {
        if changed.is_empty() {
            return;
        }
        for (at, group) in bond.groups() {
            let (_, changes) =
                self.0.entry(Arc::clone(group.name())).or_insert((group, Vec::new()));
            changes.extend(changed.iter().map(|bit| (at + bit, nodes[bit].clone())));
        }
    }

    pub(super) fn follow(self, now: Time) {
        for (group, changes) in self.0.into_values() {
            group.mirror(now, changes);
        }
    }
}

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
            if record.kind().depth() >= MOST_DEPTH {
                return Err(GroupError::TooDeep(Arc::clone(record.name())));
            }
            fields.push(Field::new(field, record.kind().clone()));
            let width = record.kind().width();
            members.push(Member { at, record });
            at += width;
        }
        let kind = Type::Structure(Structure::new("", fields));
        if kind.size() > MOST_FIELDS {
            return Err(GroupError::TooWide(kind.size()));
        }
        // From here on the records change only for whoever has passed the gate.
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
            let bond = member.record.bind(gate);
            let mut groups = bond.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.push((member.at, Arc::downgrade(&group)));
        }
        drop(passed);
        Ok(group)
    }

    /// The records that it is a group of; none, if it is no group.
    pub fn records(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.members().iter().map(|member| &member.record)
    }

    /// The groups that it belongs to.
    pub fn groups(&self) -> Vec<Arc<Self>> {
        let groups = self.bond().map(Bond::groups).unwrap_or_default();
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn bind(&self, gate: &Gate) -> &Bond {
        self.bind_with(|| Bond { gate: gate.clone(), groups: Mutex::default() })
    }

    /// As [`Record::put`], of a group.
    pub(super) fn put_group<T>(
        &self,
        now: Time,
        fields: &Bits,
        nodes: &mut [Value],
        filters: &Filters,
        then: impl FnOnce(&[Value]) -> T,
    ) -> Result<T, PutError> {
        let first = self.members().first().and_then(|member| member.record.bond());
        let _passed = first.map(Bond::pass);
        if !self.is_writable() {
            return Err(PutError::ReadOnly(Arc::clone(self.name())));
        }
        self.read(|held| filters.put(now, self.name(), self.most_bytes(), held, nodes))?;
        let mut parts = Vec::new();
        for Member { at, record } in self.members() {
            let range = *at..at + record.kind().width();
            let fields = within(fields, &range);
            if !fields.is_empty() {
                record.check_put(&fields, &nodes[range.clone()])?;
                parts.push((record, range, fields));
            }
        }
        let mut followers = Followers::default();
        for (record, range, fields) in parts {
            record.take(now, &fields, &mut nodes[range], &mut followers);
        }
        followers.follow(now);
        Ok(self.read(then))
    }

    /// As [`Record::process`], of a group.
    pub(super) fn process_group(&self, now: Time) {
        let first = self.members().first().and_then(|member| member.record.bond());
        let _passed = first.map(Bond::pass);
        let mut followers = Followers::default();
        for member in self.members() {
            member.record.take(now, &Bits::new(), &mut [], &mut followers);
        }
        followers.follow(now);
    }
}

/// The bits of one record among those of its group.
fn within(fields: &Bits, range: &std::ops::Range<usize>) -> Bits {
    if fields.contains(0) || fields.contains(range.start) {
        return [0].into_iter().collect();
    }
    fields.iter().filter(|bit| range.contains(bit)).map(|bit| bit - range.start).collect()
}
