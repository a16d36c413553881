//! The records that the simulated clients share, and what they have to hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use records::model::{Record, Time};
use records::protocol::{Field, Item, Scalar, Structure, Type, Value};
use records::server::Service;
use testing::Register;
use wire::Ns;
use wire::simulation::Random;

/// Which record, and by whom it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// By the server's own side: every version is one more than the one before.
    Ticks(usize),
    /// By clients, whose puts have numbers of their own.
    Puts(usize),
    /// By neither; it is destroyed and made anew.
    Fleeting,
}

/// The largest arrays of the records of each of the first two kinds, in elements.
const ELEMENTS: [usize; 2] = [40, 6_000];

/// All records.
pub(super) const KINDS: [Kind; 5] =
    [Kind::Ticks(0), Kind::Ticks(1), Kind::Puts(0), Kind::Puts(1), Kind::Fleeting];

impl Kind {
    pub(super) fn name(self) -> String {
        match self {
            Self::Ticks(number) => format!("ticks:{number}"),
            Self::Puts(number) => format!("puts:{number}"),
            Self::Fleeting => "fleeting".to_owned(),
        }
    }

    fn elements(self) -> usize {
        match self {
            Self::Ticks(number) | Self::Puts(number) => ELEMENTS[number],
            Self::Fleeting => 1,
        }
    }

    /// The array of a version: as many elements as the version decides, each of them the version.
    pub(super) fn array(self, version: u64) -> Value {
        let count = 1 + (version as usize).wrapping_mul(7919) % self.elements();
        let bytes = version.to_le_bytes().repeat(count);
        Value::array(Scalar::Long, bytes)
    }

    /// The version whose array this is.
    pub(super) fn version(self, value: &Value) -> Result<u64, String> {
        let array = value.as_array().ok_or("the value is no array")?;
        let (words, _) = array.bytes().as_chunks::<8>();
        let Some(first) = words.first() else { return Err("the array is empty".to_owned()) };
        let version = u64::from_le_bytes(*first);
        match *value == self.array(version) {
            true => Ok(version),
            false => Err(format!("an array of {} elements is not version {version}", array.len())),
        }
    }
}

/// The time of day, which records carry.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeOfDay(Arc<AtomicU64>);

impl TimeOfDay {
    pub(super) fn set(&self, now: Ns) {
        self.0.store(now, Relaxed);
    }

    pub(super) fn get(&self) -> Time {
        let ns = self.0.load(Relaxed);
        let nanoseconds = (ns % 1_000_000_000) as i32;
        Time { seconds: 1_700_000_000 + (ns / 1_000_000_000) as i64, nanoseconds }
    }
}

/// What all clients of one simulation know.
pub(super) struct World {
    pub(super) service: Arc<Service>,
    pub(super) time: TimeOfDay,
    /// The versions of the records that tick.
    pub(super) versions: [u64; 2],
    /// The histories of those that clients put.
    pub(super) registers: [Register; 2],
    /// A monitor that is pushed to without end never comes to rest.
    ticks_left: u32,
    pub(super) next_write: u64,
    pub(super) next_client: u64,
    pub(super) answers: u64,
    pub(super) updates: u64,
    /// Whether the server may close a client that is idle, or reads slowly.
    pub(super) may_close: bool,
}

impl World {
    pub(super) fn new(service: &Arc<Service>, time: TimeOfDay, may_close: bool) -> Self {
        let world = Self {
            service: Arc::clone(service),
            time,
            versions: [1; 2],
            registers: [Register::default(), Register::default()],
            ticks_left: 600,
            next_write: 1,
            next_client: 0,
            answers: 0,
            updates: 0,
            may_close,
        };
        for kind in KINDS {
            world.add(kind);
        }
        world
    }

    fn add(&self, kind: Kind) {
        let array = Type::array(Scalar::Long);
        let structure = Structure::new("simulated", [Field::new("value", array)]);
        let first = match kind {
            Kind::Ticks(_) => 1,
            Kind::Puts(_) | Kind::Fleeting => 0,
        };
        let mut item = Item::new(Type::Structure(structure));
        item.put(1, kind.array(first));
        let record = Record::new(&kind.name(), item, true, 1 << 20, self.time.get());
        self.service.add(record).expect("the name is free");
    }

    /// A new version of a record that ticks.
    pub(super) fn tick(&mut self, random: &mut Random) {
        let Some(left) = self.ticks_left.checked_sub(1) else { return };
        self.ticks_left = left;
        let number = random.index(self.versions.len());
        self.versions[number] += 1;
        let kind = Kind::Ticks(number);
        let record = self.service.find(&kind.name()).expect("it is never destroyed");
        let value = kind.array(self.versions[number]);
        record.update(self.time.get(), |draft| draft.set(1, value));
    }

    /// Destroys the fleeting record, and makes another of its name.
    pub(super) fn replace(&self) {
        assert!(self.service.destroy(&Kind::Fleeting.name()), "it was there");
        self.add(Kind::Fleeting);
    }
}
