//! One record: a value that many read and subscribe to, and some change.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Time;
use super::draft::Draft;
use super::error::PutError;
use super::filter::Filters;
use super::membership::{Follower, Gate, GroupChanges, Membership};
use super::rules::Rules;
use super::versions::{Cursor, Update, Versions};
use crate::protocol::{Bits, Item, Type, Value};

/// Receives notice that a record has changed or was destroyed. It is called with the record
/// locked, so it must be quick and must not call the record.
pub trait Notify: Send + Sync {
    /// The record has changed or was destroyed.
    fn notify(&self);
}

/// A record.
pub struct Record {
    name: Arc<str>,
    kind: Type,
    rules: Rules,
    /// Whether versions may be large.
    has_arrays: bool,
    state: Mutex<State>,
    is_gone: AtomicBool,
    /// The records that it is a group of.
    members: Box<[Member]>,
    /// The groups that it belongs to; set with the first of them.
    membership: OnceLock<Membership>,
}

/// A record of a group, and where in the group its fields are.
pub(super) struct Member {
    pub(super) at: usize,
    pub(super) record: Arc<Record>,
}

struct State {
    versions: Versions,
    subscribers: Vec<Subscriber>,
    next_subscriber: u64,
}

/// A subscriber, as its record knows it.
struct Subscriber {
    number: u64,
    queue: usize,
    progress: Arc<Progress>,
    notify: Arc<dyn Notify>,
}

/// The progress of a subscriber, written by it alone with the record locked.
#[derive(Default)]
struct Progress {
    /// The number of the version that it has seen last.
    seen: AtomicU64,
    /// Whether that one may still be on its way to the subscriber: it takes a place of the queue.
    is_busy: AtomicBool,
}

/// What has become of an offered update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<T> {
    /// There was none.
    Nothing,
    /// It was declined, and will be offered again.
    Declined,
    /// It was taken.
    Taken(T),
}

/// A subscription, which ends when this is dropped.
pub struct Subscription {
    record: Arc<Record>,
    number: u64,
    cursor: Cursor,
    progress: Arc<Progress>,
}

impl Record {
    /// A record that holds `item` from `now` on. Clients may put at most `most_bytes` of arrays
    /// into it, if they may change it at all.
    pub fn new(
        name: &str,
        item: Item,
        is_writable: bool,
        most_bytes: usize,
        now: Time,
    ) -> Arc<Self> {
        Self::with(name, item, is_writable, most_bytes, now, Vec::new())
    }

    pub(super) fn with(
        name: &str,
        item: Item,
        is_writable: bool,
        most_bytes: usize,
        now: Time,
        members: Vec<Member>,
    ) -> Arc<Self> {
        let kind = item.kind().clone();
        let rules = Rules::new(&kind, is_writable, most_bytes);
        let mut nodes = item.nodes().to_vec();
        let is_large = |value: &Value| value.scalar().is_none() && *value != Value::Structure;
        let has_arrays = nodes.iter().any(is_large);
        rules.begin(now, &mut nodes);
        let versions = Versions::new(&kind, nodes);
        let state = State { versions, subscribers: Vec::new(), next_subscriber: 0 };
        Arc::new(Self {
            name: Arc::from(name),
            kind,
            rules,
            has_arrays,
            state: Mutex::new(state),
            is_gone: AtomicBool::new(false),
            members: members.into(),
            membership: OnceLock::new(),
        })
    }

    /// What it is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The type of its value.
    pub fn kind(&self) -> &Type {
        &self.kind
    }

    /// Whether clients may change it.
    pub fn is_writable(&self) -> bool {
        self.rules.is_writable()
    }

    /// Whether it has been destroyed.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }

    /// Has `look` read the newest value. The record is locked meanwhile, so `look` must be quick.
    #[inline]
    pub fn read<T>(&self, look: impl FnOnce(&[Value]) -> T) -> T {
        look(self.lock().versions.newest())
    }

    /// Its value.
    pub fn item(&self) -> Item {
        let nodes = self.read(<[Value]>::to_vec);
        Item::of(self.kind.clone(), nodes).expect("a record holds a value of its type")
    }

    /// Changes it as its owner may: however many fields are set, subscribers see one event. The
    /// time stamp becomes `now` and the alarm follows the value, unless they are set, too. A group
    /// has no other owner than its records.
    pub fn update(&self, now: Time, change: impl FnOnce(&mut Draft<'_>)) {
        debug_assert!(self.members.is_empty(), "a group follows its records");
        let mut locked = self.lock_for_change();
        self.post(&mut locked.state, now, change);
        locked.update_groups(now);
    }

    /// Changes it as a client may: `fields` get the values in `nodes`, a value of the record's type
    /// of which only those fields matter, and which are taken out of it; the others have to be
    /// [`Value::Structure`]. With an array's filter, what is put is a part of the array. `then`
    /// sees what the record holds before anybody else may change it.
    ///
    /// # Errors
    /// When the record can't be changed, or not so; then it is as before.
    pub fn put<T>(
        &self,
        now: Time,
        fields: &Bits,
        nodes: &mut [Value],
        filters: &Filters,
        then: impl FnOnce(&[Value]) -> T,
    ) -> Result<T, PutError> {
        if self.is_gone() {
            return Err(PutError::Gone(Arc::clone(&self.name)));
        }
        if !self.members.is_empty() {
            return self.put_group(now, fields, nodes, filters, then);
        }
        let mut locked = self.lock_for_change();
        let newest = locked.state.versions.newest();
        filters.put(now, &self.name, self.most_bytes(), newest, nodes)?;
        self.rules.check(&self.name, fields, nodes, newest)?;
        self.post_fields(&mut locked.state, now, fields, nodes);
        locked.update_groups(now);
        Ok(then(locked.state.versions.newest()))
    }

    /// Whether a client may make this change, of one record of a group.
    pub(super) fn check_put(&self, fields: &Bits, nodes: &[Value]) -> Result<(), PutError> {
        if self.is_gone() {
            return Err(PutError::Gone(Arc::clone(&self.name)));
        }
        self.read(|held| self.rules.check(&self.name, fields, nodes, held))
    }

    /// Makes a change that was checked, by a caller that holds the gate of its groups.
    pub(super) fn take(
        &self,
        now: Time,
        fields: &Bits,
        nodes: &mut [Value],
        changes: &mut GroupChanges,
    ) {
        let mut state = self.lock();
        self.post_fields(&mut state, now, fields, nodes);
        if let Some(membership) = self.membership.get() {
            let (changed, nodes) = state.versions.newest_change();
            changes.add(membership, changed, nodes);
        }
    }

    fn post_fields(&self, state: &mut State, now: Time, fields: &Bits, nodes: &mut [Value]) {
        self.post(state, now, |draft| {
            let mut bit = fields.next(0);
            while let Some(at) = bit {
                let width = self.rules.width(at);
                for (inner, value) in nodes.iter_mut().enumerate().skip(at).take(width) {
                    if !matches!(value, Value::Structure) {
                        draft.set(inner, std::mem::replace(value, Value::Structure));
                    }
                }
                // Bits of fields whose structure's bit is set are redundant.
                bit = fields.next(at + width);
            }
        });
    }

    /// Processes it, which updates its time stamp.
    pub fn process(&self, now: Time) {
        if self.members.is_empty() {
            self.update(now, |_| {});
        } else {
            self.process_group(now);
        }
    }

    fn post(&self, state: &mut State, now: Time, change: impl FnOnce(&mut Draft<'_>)) {
        let is_changed = state.versions.change(|nodes, changed| {
            let mut draft = Draft::new(nodes, changed);
            change(&mut draft);
            self.rules.settle(now, &mut draft);
        });
        if self.has_arrays {
            state.versions.drop_unneeded(state.seen_by_all(), usize::MAX);
        }
        if is_changed {
            state.notify();
        }
    }

    /// To be called before a large array is made: drops the versions that it would push out, so
    /// that their memory can be reused for it. The array that is being made takes a place of each
    /// subscriber's queue from now on, and so does one that is being sent.
    pub fn make_room(&self) {
        let mut state = self.lock();
        let waiting = state.subscribers.iter().map(|subscriber| {
            let taken = 1 + usize::from(subscriber.progress.is_busy.load(Relaxed));
            subscriber.queue.saturating_sub(taken)
        });
        let (most, seen) = (waiting.max().unwrap_or(0), state.seen_by_all());
        state.versions.drop_unneeded(seen, most);
    }

    /// Subscribes: `notify` is called after each change, and when the record is destroyed. The
    /// newest `queue` versions, at least one, are kept to be seen.
    pub fn subscribe(self: &Arc<Self>, queue: usize, notify: Arc<dyn Notify>) -> Subscription {
        let mut state = self.lock();
        let queue = queue.max(1);
        let number = state.next_subscriber;
        state.next_subscriber += 1;
        let cursor = state.versions.cursor(queue);
        let progress = Arc::new(Progress::default());
        progress.seen.store(cursor.seen(), Relaxed);
        let known = Arc::clone(&progress);
        state.subscribers.push(Subscriber { number, queue, progress: known, notify });
        state.settle_depth();
        Subscription { record: Arc::clone(self), number, cursor, progress }
    }

    /// How many subscribers it has.
    pub fn subscribers(&self) -> usize {
        self.lock().subscribers.len()
    }

    /// Destroys it: puts are refused from now on, and subscribers are notified.
    pub fn destroy(&self) {
        self.is_gone.store(true, Relaxed);
        self.lock().notify();
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.rules.most_bytes()
    }

    /// The records that it is a group of; none, if it is no group.
    pub fn records(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.members.iter().map(|member| &member.record)
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The names of the groups that it belongs to.
    pub fn groups(&self) -> Vec<Arc<str>> {
        let groups = self.membership.get().map(Membership::groups).unwrap_or_default();
        groups.into_iter().map(|(_, group)| Arc::clone(group.name())).collect()
    }

    /// Has its changes pass this gate from now on.
    pub(super) fn bind(&self, gate: &Gate) -> &Membership {
        self.membership.get_or_init(|| Membership::new(gate))
    }

    /// As [`Record::put`], of a group.
    fn put_group<T>(
        &self,
        now: Time,
        fields: &Bits,
        nodes: &mut [Value],
        filters: &Filters,
        then: impl FnOnce(&[Value]) -> T,
    ) -> Result<T, PutError> {
        let first = self.members.first().and_then(|member| member.record.membership.get());
        let _passed = first.map(Membership::pass);
        if !self.is_writable() {
            return Err(PutError::ReadOnly(Arc::clone(self.name())));
        }
        self.read(|held| filters.put(now, self.name(), self.most_bytes(), held, nodes))?;
        let mut parts = Vec::new();
        for Member { at, record } in &self.members {
            let range = *at..at + record.kind().width();
            let fields = within(fields, &range);
            if !fields.is_empty() {
                record.check_put(&fields, &nodes[range.clone()])?;
                parts.push((record, range, fields));
            }
        }
        let mut changes = GroupChanges::default();
        for (record, range, fields) in parts {
            record.take(now, &fields, &mut nodes[range], &mut changes);
        }
        changes.apply(now);
        Ok(self.read(then))
    }

    /// As [`Record::process`], of a group.
    fn process_group(&self, now: Time) {
        let first = self.members.first().and_then(|member| member.record.membership.get());
        let _passed = first.map(Membership::pass);
        let mut changes = GroupChanges::default();
        for member in &self.members {
            member.record.take(now, &Bits::new(), &mut [], &mut changes);
        }
        changes.apply(now);
    }

    /// Locks it for a change, and the gate of its groups if it belongs to any.
    fn lock_for_change(&self) -> Locked<'_> {
        loop {
            let membership = self.membership.get();
            let passed = membership.map(Membership::pass);
            let state = self.lock();
            // It may have joined its first group meanwhile.
            if membership.is_some() || self.membership.get().is_none() {
                return Locked { state, membership, _passed: passed };
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Versions are whole between any two calls: a panic elsewhere can't break them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record that is locked for a change.
struct Locked<'a> {
    state: MutexGuard<'a, State>,
    membership: Option<&'a Membership>,
    _passed: Option<MutexGuard<'a, ()>>,
}

impl Locked<'_> {
    /// Has the groups that the record belongs to follow its newest change.
    #[inline]
    fn update_groups(&self, now: Time) {
        if let Some(membership) = self.membership {
            let (changed, nodes) = self.state.versions.newest_change();
            let mut changes = GroupChanges::default();
            changes.add(membership, changed, nodes);
            changes.apply(now);
        }
    }
}

impl State {
    fn settle_depth(&mut self) {
        let depth = self.subscribers.iter().map(|subscriber| subscriber.queue).max().unwrap_or(1);
        self.versions.keep(depth);
    }

    /// The last version that no subscriber waits for any more.
    fn seen_by_all(&self) -> u64 {
        let seen = self.subscribers.iter().map(|one| one.progress.seen.load(Relaxed));
        seen.min().unwrap_or(u64::MAX)
    }

    fn notify(&self) {
        self.subscribers.iter().for_each(|subscriber| subscriber.notify.notify());
    }
}

impl Subscription {
    /// Has `send` use the next update of the fields in `wanted`, if there is one, and the values
    /// of the record at that version.
    pub fn next<T>(
        &mut self,
        wanted: &Bits,
        send: impl FnOnce(&Update, &[Value]) -> T,
    ) -> Option<T> {
        match self.offer(wanted, |update, nodes| Some(send(update, nodes))) {
            Offer::Taken(sent) => Some(sent),
            Offer::Nothing | Offer::Declined => None,
        }
    }

    /// As [`Subscription::next`], but `send` may decline the update with none: then the next offer
    /// has its changes, too.
    pub fn offer<T>(
        &mut self,
        wanted: &Bits,
        send: impl FnOnce(&Update, &[Value]) -> Option<T>,
    ) -> Offer<T> {
        let state = self.record.lock();
        let mut cursor = self.cursor.clone();
        let next = state.versions.next(&mut cursor, wanted);
        let offer = match next {
            None => Offer::Nothing,
            Some((update, nodes)) => send(&update, nodes).map_or(Offer::Declined, Offer::Taken),
        };
        let is_taken = matches!(offer, Offer::Taken(_));
        self.progress.is_busy.store(is_taken, Relaxed);
        if !matches!(offer, Offer::Declined) {
            self.cursor = cursor;
            self.progress.seen.store(self.cursor.seen(), Relaxed);
        }
        offer
    }

    /// Whether there may be another update.
    pub fn has_news(&self) -> bool {
        self.record.lock().versions.has_news(&self.cursor)
    }

    /// The record.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.record.lock();
        state.subscribers.retain(|subscriber| subscriber.number != self.number);
        state.settle_depth();
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Follower for Record {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    fn mirror(&self, now: Time, changes: Vec<(usize, Value)>) {
        self.post(&mut self.lock(), now, |draft| {
            changes.into_iter().for_each(|(bit, value)| draft.set(bit, value));
        });
    }
}

/// The bits of one record among those of its group.
fn within(fields: &Bits, range: &std::ops::Range<usize>) -> Bits {
    if fields.contains(0) || fields.contains(range.start) {
        return [0].into_iter().collect();
    }
    fields.iter().filter(|bit| range.contains(bit)).map(|bit| bit - range.start).collect()
}
