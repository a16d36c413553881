//! Seals between random changes, and starts from what was sealed.

use bytes::Bytes;
use conditions::model::{Entry, Loader, State};

use super::World;

impl World {
    /// Begins a seal, goes on with it while changes are made, gives it up, or starts again.
    pub(super) fn seal_step(&mut self) {
        let (begins, goes_on, ends) = (self.below(6) == 0, self.below(4), self.below(30));
        let bytes = self.block_bytes.unwrap_or_default();
        if self.seal.is_none() && begins {
            let seal = match self.below(3) {
                0 => self.state.compact(bytes.saturating_mul(4)),
                _ => self.state.seal(bytes),
            };
            let seal = seal.expect("nothing is damaged");
            self.state.begin_seal(&seal);
            self.seal = Some(seal);
        }
        for _ in 0..if goes_on == 0 { 50 } else { goes_on } {
            let Some(mut seal) = self.seal.take() else { break };
            match seal.next(&self.state).expect("nothing is damaged") {
                Some(made) => {
                    let bytes = Bytes::from(made.bytes);
                    assert!(self.segments.insert(made.id, bytes.clone()).is_none());
                    seal.stored(made.id, bytes).expect("what was made");
                    self.seal = Some(seal);
                }
                None => {
                    self.snapshot = (seal.revision(), seal.records());
                    let named = seal.segments();
                    self.segments.retain(|id, _| named.contains(id));
                    let rebuilt = self.state.rebuild(&seal);
                    drop(self.state.end_seal(&seal, Some(rebuilt)));
                }
            }
        }
        match ends {
            0 => self.restart(),
            1 => {
                if let Some(seal) = self.seal.take() {
                    drop(self.state.end_seal(&seal, None));
                    let named = self.state.segments();
                    self.segments.retain(|id, _| named.contains(id));
                }
            }
            _ => {}
        }
    }

    /// The state of the snapshot, its segments, and what the journal has behind it.
    pub(super) fn restart(&mut self) {
        self.seal = None;
        let (through, records) = &self.snapshot;
        let mut again = State::default();
        if *through > 0 {
            let mut loader = Loader::default();
            records.iter().for_each(|record| loader.apply(record).expect("a record"));
            let mut open = |id, size| {
                let bytes = self.segments.get(&id).expect("the snapshot names it").clone();
                assert_eq!(bytes.len() as u64, size);
                Ok(bytes)
            };
            again = loader.finish(&mut open).expect("a snapshot");
            assert_eq!(again.damages(true), []);
        }
        assert_eq!(again.revision(), *through);
        for bytes in &self.journal[*through as usize..] {
            let entry = Entry::decode(bytes).expect("an entry");
            again.replay(entry).expect("applied once before");
        }
        // As a server does: what the journal has behind the snapshot may have deleted a tag.
        let named = again.segments();
        self.segments.retain(|id, _| named.contains(id));
        self.state = again;
    }
}
