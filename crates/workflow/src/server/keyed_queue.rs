//! A queue in which each key waits once.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values that wait in the order of time, or of their own numbers, each with a key of its own.
pub(super) struct KeyedQueue<K, V> {
    /// By numbers that go on.
    all: BTreeMap<u64, (K, V)>,
    numbers: HashMap<K, u64>,
    last: u64,
}

impl<K, V> Default for KeyedQueue<K, V> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), numbers: HashMap::new(), last: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> KeyedQueue<K, V> {
    /// Adds a value behind all others: where one with its key waits, in the place of that, which is
    /// returned.
    pub(super) fn add(&mut self, key: K, value: V) -> Option<V> {
        self.add_at(self.last + 1, key, value)
    }

    /// The same by a number that no other value has: values go by their numbers.
    pub(super) fn add_at(&mut self, number: u64, key: K, value: V) -> Option<V> {
        let known = self.numbers.get(&key).and_then(|number| self.all.get_mut(number));
        if let Some((_, known)) = known {
            return Some(std::mem::replace(known, value));
        }
        self.last = self.last.max(number);
        self.numbers.insert(key.clone(), number);
        self.all.insert(number, (key, value));
        None
    }

    /// Takes out the value that has waited for longest, or has the least number.
    pub(super) fn pop(&mut self) -> Option<(K, V)> {
        let (_, (key, value)) = self.all.pop_first()?;
        self.numbers.remove(&key);
        Some((key, value))
    }

    /// The value of a key.
    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (_, value) = self.all.get(self.numbers.get(key)?)?;
        Some(value)
    }

    /// Takes out the value of a key.
    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (_, value) = self.all.remove(&self.numbers.remove(key)?)?;
        Some(value)
    }

    /// How many values wait.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_the_order_of_time_and_a_key_waits_once() {
        let mut queue = KeyedQueue::default();
        for (key, value) in [("c", 1), ("a", 2), ("b", 3)] {
            assert_eq!(queue.add(key, value), None);
        }
        assert_eq!(queue.add("a", 4), Some(2));
        assert_eq!(queue.get("a"), Some(&4));
        assert_eq!([queue.remove("b"), queue.remove("b")], [Some(3), None]);
        assert_eq!(queue.add("b", 5), None);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(all, [("c", 1), ("a", 4), ("b", 5)]);
        assert_eq!((queue.is_empty(), queue.len()), (true, 0));
        for (number, key) in [(30, "c"), (10, "a"), (20, "b")] {
            assert_eq!(queue.add_at(number, key, 0), None);
        }
        assert_eq!(queue.add("d", 0), None);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(key, _)| key).collect();
        assert_eq!(all, ["a", "b", "c", "d"]);
    }
}
