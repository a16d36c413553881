//! A shard as the place where one item is changed that is kept elsewhere.

use super::super::Hashed;
use super::super::item::Head;
use super::super::log::Log;
use super::{MAIN, Shard, position_of};

impl Shard {
    /// Makes `bytes`, which begin with a whole item of this key, the only item.
    pub(in crate::model) fn put_alone(&mut self, hashed: &Hashed<'_>, bytes: &[u8]) {
        debug_assert_eq!(self.items(), 0, "the last one has been taken out");
        let count = Head::read(bytes).stored_bytes();
        let Some(at) = self.logs[MAIN].append(count) else { return };
        self.bytes_mut(at)[..count].copy_from_slice(&bytes[..count]);
        self.index.insert(hashed.tag, position_of(at));
        self.live_bytes[MAIN] += count;
    }

    /// Takes the only item out; whether there was one. At most about `keep_bytes` of memory stay.
    pub(in crate::model) fn take_alone(
        &mut self,
        hashed: &Hashed<'_>,
        keep_bytes: usize,
        into: &mut Vec<u8>,
    ) -> bool {
        into.clear();
        let found = self.find_with_head(hashed);
        if let Some((slot, at, head)) = &found {
            into.extend_from_slice(&self.bytes(*at)[..head.stored_bytes()]);
            self.index.remove(*slot);
        }
        self.logs.iter_mut().for_each(Log::clear);
        self.live_bytes = [0; 2];
        if self.logs[MAIN].touched_bytes() > keep_bytes
            && let Ok(fresh) = Log::new(self.logs[MAIN].capacity())
        {
            self.logs[MAIN] = fresh;
        }
        found.is_some()
    }
}
