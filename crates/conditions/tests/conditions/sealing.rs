//! What seals write, how much of it stays, and what they leave out: sizes of segments, and damage
//! that goes with a tag.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use conditions::model::{
    Added, Batch, Change, ColumnSpec, Group, Kind, Loader, MAX_TIME, Numbers, Object, Refusal,
    Seal, Selection, State, Table, Value, Version, Versioning,
};

/// The folder of all that is inserted.
const FOLDER: &str = "/f";

/// A state with its segments, as a server has them.
struct Service {
    state: State,
    /// By number.
    files: BTreeMap<u64, Bytes>,
    /// Those that the last snapshot names, and its records.
    named: BTreeSet<u64>,
    records: Vec<Vec<u8>>,
}

impl Service {
    fn new(versioning: Versioning) -> Self {
        let columns = vec![ColumnSpec { name: "bytes".to_owned(), kind: Kind::Blob }];
        let (path, description) = (FOLDER.to_owned(), String::new());
        let (files, named, records) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut service = Self { state: State::default(), files, named, records };
        service.make(Change::CreateFolder { path, description, versioning, columns });
        service
    }

    fn try_make(&mut self, change: Change) -> Result<u64, Refusal> {
        let mut group = Group::default();
        let Added::At(revision) = group.add(&self.state, change, 0)? else {
            panic!("an empty group takes everything");
        };
        self.state.apply_group(group);
        Ok(revision)
    }

    fn make(&mut self, change: Change) -> u64 {
        self.try_make(change).expect("a change")
    }

    fn insert(&mut self, channel: u32, times: &[(u64, u64)], bytes: usize) -> u64 {
        self.make(insertion(channel, times, bytes, None))
    }

    /// Seals, in blocks of about this size; returns how many bytes each new segment has.
    fn seal(&mut self, block_bytes: u64) -> Vec<usize> {
        let seal = self.state.seal(block_bytes).expect("nothing is damaged");
        self.store(seal)
    }

    /// Puts small segments together, in the same way.
    fn compact(&mut self, block_bytes: u64) -> Vec<usize> {
        let seal = self.state.compact(block_bytes).expect("nothing is damaged");
        self.store(seal)
    }

    fn store(&mut self, mut seal: Seal) -> Vec<usize> {
        self.state.begin_seal(&seal);
        let mut sizes = Vec::new();
        while let Some(made) = seal.next(&self.state).expect("nothing is damaged") {
            sizes.push(made.bytes.len());
            let bytes = Bytes::from(made.bytes);
            self.files.insert(made.id, bytes.clone());
            seal.stored(made.id, bytes).expect("what was made");
        }
        (self.named, self.records) = (seal.segments(), seal.records());
        let rebuilt = self.state.rebuild(&seal);
        drop(self.state.end_seal(&seal, Some(rebuilt)));
        self.files.retain(|id, _| self.named.contains(id));
        sizes
    }

    fn bytes(&self) -> usize {
        self.files.values().map(Bytes::len).sum()
    }

    /// How many segments are of a kind: 1 of blocks, 2 of the past.
    fn count(&self, kind: u8) -> usize {
        self.files.values().filter(|bytes| bytes[10] == kind).count()
    }

    /// Starts again from the last snapshot, without some of its segments.
    fn start_without(&mut self, gone: &BTreeSet<u64>) {
        let mut loader = Loader::default();
        self.records.iter().for_each(|record| loader.apply(record).expect("a record"));
        let mut open = |id, _| match gone.contains(&id) {
            true => Err("it is gone".to_owned()),
            false => Ok(self.files[&id].clone()),
        };
        self.state = loader.finish(&mut open).expect("a snapshot");
    }

    /// How many objects a channel shows at a revision.
    fn shown(&self, channel: u32, revision: u64) -> u64 {
        let numbers = Some(Numbers::of_ranges(vec![(channel, channel)]));
        let of = Selection { numbers, ..Selection::default() };
        let folder = self.state.folder(FOLDER).expect("a folder");
        let version = Version { revision, user_tag: None };
        folder.count((0, MAX_TIME), &of, version).expect("a number")
    }
}

/// Objects of one channel, each with this many bytes of payload.
fn insertion(channel: u32, times: &[(u64, u64)], bytes: usize, tag: Option<&str>) -> Change {
    let mut payload = Table::new([Kind::Blob]);
    let object = |(since, until): &(u64, u64)| {
        payload.columns[0].push(&Value::Bytes(vec![7; bytes])).expect("bytes");
        payload.rows += 1;
        Object { channel, since: *since, until: *until, records: 1 }
    };
    let objects = times.iter().map(object).collect();
    let (folder, only_tag) = (FOLDER.to_owned(), tag.is_some());
    Change::Insert(vec![Batch { folder, tag: tag.map(str::to_owned), only_tag, objects, payload }])
}

/// Intervals of 10 units, one after another.
fn tens(count: u64) -> Vec<(u64, u64)> {
    (0..count).map(|n| (10 * n, 10 * n + 10)).collect()
}

#[test]
fn a_compaction_puts_small_segments_together_and_changes_no_answer() {
    let mut service = Service::new(Versioning::Multi);
    // Blocks of an interval or two each, and what is past of some of them.
    service.insert(0, &tens(40), 1_000);
    service.seal(1_500);
    for round in 0..4 {
        service.insert(0, &[(100 * round, 100 * round + 20)], 100);
        service.seal(1_500);
    }
    let revisions = 0..=service.state.revision();
    let shown = |service: &Service| {
        revisions.clone().map(|revision| service.shown(0, revision)).collect::<Vec<_>>()
    };
    let (before, blocks) = (shown(&service), service.count(1));
    assert!(blocks >= 20, "{blocks} blocks");
    assert_eq!(service.state.sealed_size(), (service.files.len(), service.bytes() as u64));
    let written = service.compact(1 << 20);
    assert_eq!((service.count(1), service.count(2)), (1, 1), "{written:?}");
    assert_eq!(shown(&service), before);
    assert_eq!(service.compact(1 << 20), [0; 0], "there is nothing more to do");
    service.start_without(&BTreeSet::new());
    assert_eq!(shown(&service), before);
}

#[test]
fn a_seal_of_little_does_not_copy_the_long_intervals_of_its_block_once_more() {
    let mut service = Service::new(Versioning::Multi);
    for channel in 0..6 {
        service.insert(channel, &[(0, MAX_TIME)], 1_000);
    }
    service.seal(4_000);
    let first = service.bytes();
    for n in 1..=20 {
        service.insert(100, &[(100 * n, 100 * n + 50)], 1);
        service.seal(4_000);
    }
    let now = service.bytes();
    // Once more at most, where a block begins behind them.
    assert!(now < 3 * first, "{now} bytes after 20 seals of one byte each, and {first} before");
}

#[test]
fn what_is_no_longer_shown_is_cut_into_segments_of_limited_size() {
    let mut service = Service::new(Versioning::Multi);
    let before = service.insert(1, &tens(200), 1_000);
    service.seal(1_000);
    let after = service.insert(1, &[(0, MAX_TIME)], 1);
    let sizes = service.seal(1_000);
    assert!(sizes.iter().all(|bytes| *bytes < 20_000), "{sizes:?}");
    assert!(service.count(2) > 10, "200 kB of them: {sizes:?}");
    // What follows stays limited, too, and is put together with what came before.
    for n in 0..40 {
        service.insert(1, &[(5, 7 + n)], 1);
        let sizes = service.seal(1_000);
        assert!(sizes.iter().all(|bytes| *bytes < 20_000), "{sizes:?}");
    }
    assert!(service.count(2) < 20, "{} segments", service.count(2));
    service.start_without(&BTreeSet::new());
    assert_eq!((service.shown(1, before), service.shown(1, after)), (200, 1));
}

#[test]
fn blocks_that_have_become_small_are_joined() {
    let mut service = Service::new(Versioning::Single);
    let before = service.insert(1, &tens(1_500), 100);
    service.seal(2_000);
    let blocks = service.count(1);
    assert!(blocks > 40, "{blocks} blocks");
    let channels = Numbers::All;
    service.make(Change::Truncate { folder: FOLDER.to_owned(), until: 10, channels });
    service.seal(2_000);
    assert!(service.count(1) <= blocks / 8, "{} blocks instead of {blocks}", service.count(1));
    assert_eq!((service.shown(1, before), service.shown(1, before + 1)), (1_500, 1));
}

#[test]
fn blocks_of_no_size_are_of_one_object_at_least() {
    let mut service = Service::new(Versioning::Multi);
    let last = service.insert(1, &[(5, 6), (5, 6), (9, 20)], 0);
    service.seal(0);
    assert_eq!(service.count(1), 2);
    assert_eq!(service.shown(1, last), 2);
}

#[test]
fn a_seal_fails_where_the_state_has_lost_what_it_is_of() {
    let mut service = Service::new(Versioning::Multi);
    service.make(insertion(1, &tens(3), 10, Some("mine")));
    // Not begun, so that what is deleted is not kept for it.
    let mut seal = service.state.seal(100).expect("nothing is damaged");
    service.make(Change::DeleteTag("mine".to_owned()));
    let mut made = || seal.next(&service.state).map(|made| made.map(|made| made.id));
    let first = made();
    assert!(first.is_err() || made().is_err(), "{first:?}");
}

#[test]
fn a_folder_takes_changes_again_once_the_tag_whose_segment_is_damaged_is_deleted() {
    let mut service = Service::new(Versioning::Multi);
    service.insert(1, &tens(3), 10);
    service.seal(1_000);
    let of_head = service.named.clone();
    service.make(insertion(1, &tens(3), 10, Some("mine")));
    service.seal(1_000);
    let of_tag = service.named.difference(&of_head).copied().collect();
    service.start_without(&of_tag);
    let refused = service.try_make(insertion(1, &tens(2), 10, None));
    assert!(matches!(refused, Err(Refusal::Damaged(_))), "{refused:?}");
    service.make(Change::DeleteTag("mine".to_owned()));
    assert_eq!(service.state.damages(true), []);
    let made = service.insert(1, &tens(2), 10);
    assert_eq!(service.shown(1, made), 3);
}

#[test]
fn what_a_change_takes_into_memory_counts_until_it_is_sealed() {
    let mut service = Service::new(Versioning::Multi);
    service.insert(1, &tens(1_000), 1);
    service.seal(1_000);
    assert_eq!(service.state.unsealed_bytes(), 0);
    service.insert(1, &[(0, MAX_TIME)], 1);
    let unsealed = service.state.unsealed_bytes();
    assert!(unsealed > 50_000, "{unsealed} bytes for 1,000 pieces");
    service.seal(1_000);
    assert_eq!(service.state.unsealed_bytes(), 0);
    service.make(insertion(1, &tens(1_000), 1, Some("mine")));
    service.seal(1_000);
    for n in 0..10 {
        let (from, to) = ("mine".to_owned(), format!("mine{n}"));
        service.make(Change::Clone { from, to, description: String::new() });
    }
    let unsealed = service.state.unsealed_bytes();
    assert!(unsealed > 500_000, "{unsealed} bytes for 10,000 pieces");
}

#[test]
fn what_comes_in_order_is_kept_once_and_written_a_few_times_however_often_it_is_sealed() {
    const SEALS: u64 = 64;
    const OBJECTS: u64 = 50;
    const CHANNELS: u32 = 3;
    const BYTES: usize = 100;
    // The n-th object of each channel is [n, n + 1), or [n, open), which the next one cuts.
    for is_open in [false, true] {
        let mut service = Service::new(Versioning::Single);
        let mut written = 0;
        let mut made = Vec::new();
        for round in 0..SEALS {
            for n in round * OBJECTS..(round + 1) * OBJECTS {
                let until = if is_open { MAX_TIME } else { n + 1 };
                let channels =
                    (0..CHANNELS).map(|channel| service.insert(channel, &[(n, until)], BYTES));
                made.extend(channels.last());
            }
            written += service.seal(1 << 30).iter().sum::<usize>();
            // Each is less than two thirds of the one before.
            assert!(service.files.len() <= 8, "{} segments", service.files.len());
        }
        let rows = (SEALS * OBJECTS) as usize * CHANNELS as usize;
        let kept = service.bytes();
        // A blob has the place of its end beside it.
        let per_row = kept as f64 / rows as f64 - (BYTES + 8) as f64;
        assert!(per_row < 20.0, "{per_row} bytes beside the payload, open: {is_open}");
        // A row is written again when as much has come since: half of log2(64) times, and once.
        let times = written as f64 / kept as f64;
        assert!(times < 4.5, "written {times} times, open: {is_open}");
        // What was open before it was cut is still answered.
        let folder = service.state.folder(FOLDER).expect("a folder");
        for n in [0, 49, 50, 1_000, SEALS * OBJECTS - 1] {
            let version = Version { revision: made[n as usize], user_tag: None };
            let found = folder.find(SEALS * OBJECTS + 7, &Selection::default(), version);
            let objects = found.expect("an answer").objects;
            let times: Vec<_> = objects.iter().map(|object| (object.since, object.until)).collect();
            let count = if is_open { CHANNELS as usize } else { 0 };
            assert_eq!(times, vec![(n, MAX_TIME); count]);
        }
    }
}

#[test]
fn what_a_block_that_ends_earlier_by_now_holds_behind_its_end_does_not_count() {
    let mut service = Service::new(Versioning::Single);
    let mut first: Vec<_> = (0..80).map(|n| (n, n + 1)).collect();
    first.push((80, 95));
    service.insert(1, &first, 0);
    service.insert(2, &[(0, 1), (100, 101)], 0);
    service.seal(1 << 30);
    service.insert(2, &[(90, 91)], 0);
    service.seal(1 << 30);
    assert_eq!(service.files.len(), 2, "the first block stays");
    let view = service.state.view(None, None, "/").expect("the head");
    for (time, since) in [(85, 80), (89, 80), (90, 90), (91, 91), (100, 100)] {
        let place = service.state.canonical("/", time, view).expect("a place");
        assert_eq!(place.since, since, "{time}");
    }
    let last = service.state.revision();
    assert_eq!(service.shown(1, last) + service.shown(2, last), 84);
}
