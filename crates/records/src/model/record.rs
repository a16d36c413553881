//! One record: a value that many read and subscribe to, and some change.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::group::{Bond, Followers, Member};
use super::rules::Rules;
use super::versions::{Cursor, Update, Versions};
use super::{Filters, Time};
use crate::protocol::{Bits, Item, Type, Value};

/// Told that a record has changed, or is no more. It is called with the record locked, so it has
/// to be quick and must not ask the record anything.
pub trait Notify: Send + Sync {
    /// There is news.
    fn notify(&self);
}

/// A put that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The record can't be changed by clients.
    #[error("{0} can only be read")]
    ReadOnly(Arc<str>),
    /// The value is outside of the limits that the record has.
    #[error("{value} is outside of the limits of {record}, {low} to {high}")]
    OutOfLimits {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        value: String,
        /// The lower limit.
        low: String,
        /// The upper limit.
        high: String,
    },
    /// There is no choice with that index.
    #[error("{record} has no choice {index}: it has {count}")]
    NoChoice {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        index: i32,
        /// How many choices there are.
        count: usize,
    },
    /// An array is too long.
    #[error("{bytes} bytes are more than the {most} that {record} may hold")]
    TooLong {
        /// Which record.
        record: Arc<str>,
        /// What was put.
        bytes: usize,
        /// What it may hold.
        most: usize,
    },
    /// A part of an array is put with too few elements for it.
    #[error("the part of {record} has {count} elements, and {sent} came")]
    TooFew {
        /// Which record.
        record: Arc<str>,
        /// How many elements the part has.
        count: usize,
        /// How many were put.
        sent: usize,
    },
    /// The record has been destroyed.
    #[error("{0} is no more")]
    Gone(Arc<str>),
}

/// A new version under way.
#[derive(Debug)]
pub struct Draft<'a> {
    nodes: &'a mut [Value],
    changed: &'a mut Bits,
}

impl<'a> Draft<'a> {
    pub(super) fn new(nodes: &'a mut [Value], changed: &'a mut Bits) -> Self {
        Self { nodes, changed }
    }

    /// What the fields hold so far.
    pub fn nodes(&self) -> &[Value] {
        self.nodes
    }

    /// Gives the field with this bit a new value, which is of its type.
    #[inline]
    pub fn set(&mut self, bit: usize, value: Value) {
        self.nodes[bit] = value;
        self.changed.insert(bit);
    }

    /// Whether the field with this bit has a new value.
    pub fn has(&self, bit: usize) -> bool {
        self.changed.contains(bit)
    }
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
    /// What ties it to the groups that it belongs to.
    bond: OnceLock<Bond>,
}

struct State {
    versions: Versions,
    subscribers: Vec<Subscriber>,
    next_subscriber: u64,
}

/// What a record knows of a subscriber.
struct Subscriber {
    number: u64,
    queue: usize,
    progress: Arc<Progress>,
    notify: Arc<dyn Notify>,
}

/// How far a subscriber is. Written by it alone, with the record locked.
#[derive(Default)]
struct Progress {
    /// The number of the version that it has seen last.
    seen: AtomicU64,
    /// Whether that one is still being told, as far as is known: it takes a place of the queue.
    is_busy: AtomicBool,
}

/// A subscriber's place; it is given up when this is dropped.
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
            bond: OnceLock::new(),
        })
    }

    /// What it is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it holds.
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

    /// Looks at what it holds now. Nobody can change it meanwhile, so be quick.
    #[inline]
    pub fn read<T>(&self, look: impl FnOnce(&[Value]) -> T) -> T {
        look(self.lock().versions.newest())
    }

    /// What it holds now.
    pub fn item(&self) -> Item {
        let nodes = self.read(<[Value]>::to_vec);
        Item::of(self.kind.clone(), nodes).expect("a record holds a value of its type")
    }

    /// Changes it as its owner may: however many fields are set, subscribers see one event. The
    /// time stamp becomes `now` and the alarm follows the value, unless they are set, too. A group
    /// has no other owner than its records.
    pub fn update(&self, now: Time, change: impl FnOnce(&mut Draft<'_>)) {
        debug_assert!(self.members.is_empty(), "a group follows its records");
        let mut held = self.hold();
        self.post(&mut held.state, now, change);
        held.tell_groups(now);
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
        let mut held = self.hold();
        let newest = held.state.versions.newest();
        filters.put(now, &self.name, self.most_bytes(), newest, nodes)?;
        self.rules.check(&self.name, fields, nodes, newest)?;
        self.post_fields(&mut held.state, now, fields, nodes);
        held.tell_groups(now);
        Ok(then(held.state.versions.newest()))
    }

    /// Whether a client may make this change, of one record of a group.
    pub(super) fn check_put(&self, fields: &Bits, nodes: &[Value]) -> Result<(), PutError> {
        if self.is_gone() {
            return Err(PutError::Gone(Arc::clone(&self.name)));
        }
        self.read(|held| self.rules.check(&self.name, fields, nodes, held))
    }

    /// Makes a change that was checked, for somebody who has passed the gate of its groups.
    pub(super) fn take(
        &self,
        now: Time,
        fields: &Bits,
        nodes: &mut [Value],
        followers: &mut Followers,
    ) {
        let mut state = self.lock();
        self.post_fields(&mut state, now, fields, nodes);
        if let Some(bond) = self.bond() {
            let (changed, nodes) = state.versions.newest_change();
            followers.note(bond, changed, nodes);
        }
    }

    /// Follows the records that it is a group of.
    pub(super) fn mirror(&self, now: Time, changes: Vec<(usize, Value)>) {
        self.post(&mut self.lock(), now, |draft| {
            changes.into_iter().for_each(|(bit, value)| draft.set(bit, value));
        });
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
                // Bits of fields whose structure's bit is set say nothing more.
                bit = fields.next(at + width);
            }
        });
    }

    /// Has it do what it does when asked to: it takes the time.
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
            state.versions.give_up(state.seen_by_all(), usize::MAX);
        }
        if is_changed {
            state.notify();
        }
    }

    /// To be called before a large array is made: gives up the versions that would be pushed out
    /// by it, so that their memory can be used for that. What is being made takes a place of each
    /// subscriber's queue from now on, and so does what one is being sent.
    pub fn make_room(&self) {
        let mut state = self.lock();
        let waiting = state.subscribers.iter().map(|subscriber| {
            let taken = 1 + usize::from(subscriber.progress.is_busy.load(Relaxed));
            subscriber.queue.saturating_sub(taken)
        });
        let (most, seen) = (waiting.max().unwrap_or(0), state.seen_by_all());
        state.versions.give_up(seen, most);
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

    /// Ends it: puts are refused from now on, and whoever subscribes is notified.
    pub fn destroy(&self) {
        self.is_gone.store(true, Relaxed);
        self.lock().notify();
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.rules.most_bytes()
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn bond(&self) -> Option<&Bond> {
        self.bond.get()
    }

    pub(super) fn bind_with(&self, bond: impl FnOnce() -> Bond) -> &Bond {
        self.bond.get_or_init(bond)
    }

    /// Holds it for a change, and the gate of its groups if it belongs to any.
    fn hold(&self) -> Held<'_> {
        loop {
            let bond = self.bond();
            let passed = bond.map(Bond::pass);
            let state = self.lock();
            // It may have come to belong to one since it was looked at.
            if bond.is_some() || self.bond().is_none() {
                return Held { state, bond, _passed: passed };
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Versions are whole between any two calls: a panic elsewhere can't break them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record that is held for a change.
struct Held<'a> {
    state: MutexGuard<'a, State>,
    bond: Option<&'a Bond>,
    _passed: Option<MutexGuard<'a, ()>>,
}

impl Held<'_> {
    /// Has the groups that the record belongs to follow its newest change.
    #[inline]
    fn tell_groups(&self, now: Time) {
        if let Some(bond) = self.bond {
            let (changed, nodes) = self.state.versions.newest_change();
            let mut followers = Followers::default();
            followers.note(bond, changed, nodes);
            followers.follow(now);
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
    /// What is next of the fields in `wanted`, if there is anything: `tell` gets the update and
    /// what the record held then.
    pub fn next<T>(
        &mut self,
        wanted: &Bits,
        tell: impl FnOnce(&Update, &[Value]) -> T,
    ) -> Option<T> {
        let state = self.record.lock();
        let next = state.versions.next(&mut self.cursor, wanted);
        self.progress.seen.store(self.cursor.seen(), Relaxed);
        self.progress.is_busy.store(next.is_some(), Relaxed);
        let (update, nodes) = next?;
        Some(tell(&update, nodes))
    }

    /// Whether something may be next.
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
