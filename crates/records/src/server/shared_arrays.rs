//! Segments of shared memory for the arrays that this server makes, and the location of each: so
//! that clients of this host may get locations instead of elements.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use wire::Bytes;

use crate::protocol::ArrayLocation;
use crate::shared::Segment;

/// How many unused segments wait before the first of them is written again: readers, for which
/// the writer does not wait, have the time in which that many arrays are made.
const REST: usize = 2;

/// The shared arrays of a service.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedArrays(Arc<Mutex<ArraysState>>);

#[derive(Debug, Default)]
struct ArraysState {
    /// Those that are to be written again, the one that has waited longest first.
    spare: VecDeque<Segment>,
    /// The arrays that are there: where they begin and where they are for others.
    arrays: Vec<(usize, ArrayLocation)>,
    made: u64,
}

/// An array that is being written, or is there to be read.
#[derive(Debug)]
pub(super) struct Slot {
    /// There until this is dropped.
    segment: Option<Segment>,
    bytes: usize,
    home: SharedArrays,
}

impl SharedArrays {
    fn lock(&self) -> std::sync::MutexGuard<'_, ArraysState> {
        // Lists are whole between any two calls: a panic elsewhere can't break them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for an array of `bytes` bytes.
    ///
    /// # Errors
    /// When the system has none.
    pub(super) fn take(&self, bytes: usize) -> io::Result<Slot> {
        let (found, number) = {
            let mut state = self.lock();
            state.made += 1;
            let is_rested = state.spare.len() > REST;
            (is_rested.then(|| state.spare.pop_front()).flatten(), state.made)
        };
        let fits = |segment: &Segment| segment.capacity() / 8 == bytes.div_ceil(8);
        let mut segment = match found.filter(fits) {
            Some(segment) => segment,
            None => Segment::new(bytes, number)?,
        };
        segment.begin();
        Ok(Slot { segment: Some(segment), bytes, home: self.clone() })
    }

    /// Where an array of this service lies, if others can see it.
    pub(super) fn place(&self, array: &Bytes) -> Option<ArrayLocation> {
        let start = array.as_ptr().addr();
        let state = self.lock();
        let found = state.arrays.iter().find(|(at, _)| *at == start)?;
        Some(found.1).filter(|place| place.bytes == array.len() as u64)
    }
}

impl Slot {
    /// The array, whole and to be shared.
    pub(super) fn freeze(mut self) -> Bytes {
        if let Some(segment) = &mut self.segment {
            segment.end();
            let entry = (segment.address(), segment.place(self.bytes));
            self.home.lock().arrays.push(entry);
        }
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        self.segment.as_ref().map_or(&[], |segment| &segment.bytes()[..self.bytes])
    }
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes;
        self.segment.as_mut().map_or(&mut [], |segment| &mut segment.bytes_mut()[..bytes])
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(segment) = self.segment.take() else { return };
        let start = segment.address();
        let mut state = self.home.lock();
        state.arrays.retain(|(at, _)| *at != start);
        state.spare.push_back(segment);
        // Without subscribers two rest, and one is written while one is read.
        let old = (state.spare.len() > REST + 1).then(|| state.spare.pop_front());
        drop(state);
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Mapped;

    #[test]
    fn an_array_stays_where_it_is_for_a_while_after_nobody_here_needs_it() {
        let segments = SharedArrays::default();
        let make = |byte: u8| {
            let mut slot = segments.take(1000).expect("memory");
            slot.as_mut().fill(byte);
            slot.freeze()
        };
        let first = make(1);
        let place = segments.place(&first).expect("it is shared");
        let mapped = Mapped::open(&place).expect("the own process is open to itself");
        let seen = || mapped.look(&place, |words| words.word(124)[7]);
        assert_eq!(segments.place(&first.slice(8..)), None);
        drop(first);
        for byte in 2..=3 {
            drop(make(byte));
            assert_eq!(seen(), Some(1));
        }
        drop((make(4), make(5)));
        assert_eq!(seen(), None, "it was written again");
        assert!(segments.lock().spare.len() <= REST + 1 && segments.lock().arrays.is_empty());
    }
}
