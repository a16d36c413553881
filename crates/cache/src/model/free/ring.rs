//! Where items lie in a ring of words: they are appended at the head and leave at the tail, and
//! none crosses the end. The words themselves are elsewhere.

/// Places in the ring, in words.
#[derive(Debug)]
pub(super) struct Ring {
    capacity: usize,
    head: usize,
    tail: usize,
    /// Where the head turned back to zero, while the tail is still before that point.
    lap_end: Option<usize>,
    /// How far the head has ever been.
    touched: usize,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, head: 0, tail: 0, lap_end: None, touched: 0 }
    }

    /// How many words have ever been used.
    pub(super) fn touched(&self) -> usize {
        self.touched
    }

    /// Where the oldest item is, unless the ring is empty.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.lap_end.is_some() || self.tail < self.head).then_some(self.tail)
    }

    /// Takes `count` words at the head, when they are free.
    pub(super) fn append(&mut self, count: usize) -> Option<usize> {
        match self.lap_end {
            Some(_) if self.head + count > self.tail => return None,
            None if self.head + count > self.capacity => {
                if count > self.tail {
                    return None;
                }
                self.lap_end = Some(self.head);
                self.head = 0;
            }
            _ => {}
        }
        let at = self.head;
        self.head += count;
        self.touched = self.touched.max(self.head);
        Some(at)
    }

    /// Frees the oldest `count` words: one item.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        self.tail += count;
        if self.lap_end == Some(self.tail) {
            self.lap_end = None;
            self.tail = 0;
        } else if self.lap_end.is_none() && self.tail == self.head {
            self.clear();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        (self.head, self.tail, self.lap_end) = (0, 0, None);
    }
}
