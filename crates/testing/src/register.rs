//! Whether a value that many read and write is linearizable, as far as that can be told from writes
//! of different values without a search: no read returns what was never written, or what had been
//! overwritten for certain before the read began.

use std::collections::BTreeMap;

/// A write with its times. `OPEN` is one that isn't known yet, or never will be.
#[derive(Clone, Copy, Debug)]
struct Write {
    start_ns: u64,
    end_ns: u64,
    /// When it had certainly been carried out: at its end, or that of a read of its value.
    applied_ns: u64,
    /// Whether it leaves nothing.
    is_delete: bool,
}

const OPEN: u64 = u64::MAX;

/// The history of one value. Writes are numbered, and 0 is the state before the first of them:
/// nothing.
#[derive(Debug)]
pub struct Register {
    writes: BTreeMap<u64, Write>,
    /// When a write had been carried out, and when it had begun.
    applied: Vec<(u64, u64)>,
}

impl Default for Register {
    fn default() -> Self {
        let first = Write { start_ns: 0, end_ns: 0, applied_ns: 0, is_delete: true };
        Self { writes: [(0, first)].into(), applied: Vec::new() }
    }
}

impl Register {
    /// A write has been sent.
    pub fn begin(&mut self, number: u64, now_ns: u64) {
        let write = Write { start_ns: now_ns, end_ns: OPEN, applied_ns: OPEN, is_delete: false };
        self.writes.insert(number, write);
    }

    /// A write that leaves nothing has been sent.
    pub fn begin_delete(&mut self, number: u64, now_ns: u64) {
        self.begin(number, now_ns);
        self.writes.entry(number).and_modify(|write| write.is_delete = true);
    }

    /// A write has been answered.
    pub fn end(&mut self, number: u64, now_ns: u64) {
        self.writes.entry(number).and_modify(|write| write.end_ns = now_ns);
        self.apply(number, now_ns);
    }

    /// A write has had no effect.
    pub fn refuse(&mut self, number: u64) {
        self.writes.remove(&number);
    }

    /// A write has been refused, and may have left nothing.
    pub fn become_delete(&mut self, number: u64) {
        self.writes.entry(number).and_modify(|write| write.is_delete = true);
    }

    fn apply(&mut self, number: u64, now_ns: u64) {
        let Some(write) = self.writes.get_mut(&number) else { return };
        if now_ns < write.applied_ns {
            write.applied_ns = now_ns;
            self.applied.push((now_ns, write.start_ns));
        }
    }

    /// A read that was sent at `start_ns` has returned the value of a write.
    ///
    /// # Errors
    /// When it may not.
    pub fn read(&mut self, number: u64, start_ns: u64, now_ns: u64) -> Result<(), String> {
        let Some(write) = self.writes.get(&number).copied() else {
            return Err(format!("the value of write {number}, which was not made here"));
        };
        if self.is_overwritten(write, start_ns) {
            return Err(format!("the value of write {number}, which was overwritten before"));
        }
        self.apply(number, now_ns);
        Ok(())
    }

    /// A read that was sent at `start_ns` has found nothing.
    ///
    /// # Errors
    /// When something has to be there.
    pub fn miss(&self, start_ns: u64) -> Result<(), String> {
        let mut deletes = self.writes.values().filter(|write| write.is_delete);
        match deletes.any(|delete| !self.is_overwritten(*delete, start_ns)) {
            true => Ok(()),
            false => Err("nothing, although the last delete was overwritten before".to_owned()),
        }
    }

    /// Whether another write began after this one had ended, and was carried out before `at_ns`.
    fn is_overwritten(&self, write: Write, at_ns: u64) -> bool {
        let is_later =
            |(applied_ns, start_ns): &(u64, u64)| *applied_ns < at_ns && write.end_ns < *start_ns;
        self.applied.iter().any(is_later)
    }
}

#[cfg(test)]
mod tests {
    use super::Register;

    #[test]
    fn what_overlaps_is_free_and_what_was_overwritten_is_stale() {
        let mut register = Register::default();
        register.miss(5).expect("nothing was written");
        register.begin(1, 10);
        register.end(1, 20);
        register.miss(15).expect("it overlaps the write");
        register.miss(30).expect_err("the write has ended");
        register.begin(2, 40);
        register.read(1, 45, 46).expect("the second may not have been carried out");
        register.read(2, 47, 48).expect("or it may");
        register.read(1, 50, 51).expect_err("one has read the second");
        register.read(3, 50, 51).expect_err("there is no third");
        register.begin_delete(4, 60);
        register.miss(61).expect("it may have been deleted");
        register.refuse(4);
        register.miss(70).expect_err("it was not");
    }
}
