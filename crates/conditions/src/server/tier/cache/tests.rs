//! Copies of segments that come and go.

use super::*;
use crate::model::{
    Batch, Change, ColumnSpec, Entry, Kind, MAX_TIME, Made, Object, State, Table, Value, Versioning,
};

/// A segment each of as many folders, with a blob of 20,000 bytes.
fn made(count: u64) -> Vec<Made> {
    let mut state = State::default();
    for n in 0..count {
        let columns = vec![ColumnSpec { name: "v".to_owned(), kind: Kind::Blob }];
        let (path, description) = (format!("/f{n}"), String::new());
        let mut payload = Table::new([Kind::Blob]);
        payload.columns[0].push(&Value::Bytes(vec![n as u8; 20_000])).expect("a blob");
        payload.rows = 1;
        let objects = vec![Object { channel: 0, since: 0, until: MAX_TIME, records: 1 }];
        let folder = path.clone();
        let batch = Batch { folder, tag: None, only_tag: false, objects, payload };
        let versioning = Versioning::Multi;
        let create = Change::CreateFolder { path, description, versioning, columns };
        for change in [create, Change::Insert(vec![batch])] {
            let revision = state.revision() + 1;
            state.replay(Entry { revision, time_us: 0, change }).expect("a change");
        }
    }
    let mut seal = state.seal(1 << 20).expect("all is known");
    state.begin_seal(&seal);
    let mut all = Vec::new();
    while let Some(made) = seal.next(&state).expect("a segment") {
        seal.stored(made.id, Bytes::from(made.bytes.clone())).expect("it is whole");
        all.push(made);
    }
    all
}

struct Place {
    folder: tempfile::TempDir,
    all: Vec<Made>,
}

impl Place {
    /// Segments that are not kept yet.
    fn of(count: u64) -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), all: made(count) }
    }

    fn kept(&self, most_bytes: u64) -> Arc<Kept> {
        let url = format!("file://{}/objects", self.folder.path().display());
        let bucket = Arc::new(Bucket::open(&url, None, None).expect("a bucket"));
        let copies = self.folder.path().join("copies");
        Arc::new(Kept::open(bucket, &copies, most_bytes).expect("a directory"))
    }

    fn bytes(&self, segments: usize) -> u64 {
        self.all[..segments].iter().map(|made| made.bytes.len() as u64).sum()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let one = |made: &Made| {
            let segment = Segment::open(made.id, Bytes::from(made.bytes.clone()));
            (made.id, made.bytes.len() as u64, segment.expect("whole").checksum())
        };
        self.all.iter().map(one).collect()
    }

    /// The bytes of all copies, which are counted rightly.
    fn used(&self, kept: &Kept) -> u64 {
        let files = fs::read_dir(self.folder.path().join("copies")).expect("a folder");
        let bytes = files.map(|file| file.expect("a file").metadata().expect("there").len());
        let bytes = bytes.sum();
        assert_eq!(bytes, kept.lock().bytes);
        bytes
    }
}

/// Which are here.
fn here(kept: &Kept) -> Vec<u64> {
    let copies = kept.lock();
    let here = copies.by_id.iter().filter(|(_, copy)| copy.payload.here().is_some());
    here.map(|(id, _)| *id).collect()
}

#[test]
fn what_was_read_least_recently_is_evicted_and_fetched_once_for_all_who_miss_it() {
    let place = Place::of(4);
    let ids: Vec<u64> = place.all.iter().map(|made| made.id).collect();
    let most = place.bytes(3);
    let kept = place.kept(most);
    for made in &place.all {
        kept.put(made.id, &made.bytes).expect("kept");
        assert!(place.used(&kept) <= most);
    }
    assert_eq!(here(&kept), ids[2..]);
    kept.fetch(ids[2]).expect("it is here");
    kept.fetch(ids[0]).expect("it is there");
    assert_eq!(here(&kept), [ids[0], ids[2]], "the other was read less recently");
    let came = kept.now.load(std::sync::atomic::Ordering::Relaxed);
    let pins = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| kept.fetch(ids[1]).expect("it is there"));
        let asked: Vec<_> = (0..8).map(|_| ask()).collect();
        asked.into_iter().flat_map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(kept.now.load(std::sync::atomic::Ordering::Relaxed), came + 2);
    assert_eq!(pins.len(), 8);
    // What is being read stays, and what has no room beside it is refused.
    let other = kept.fetch(ids[0]).expect("it is here or there");
    let why = kept.fetch(ids[3]).expect_err("there is no room").to_string();
    assert!(why.contains(&format!("--cache-size lets {most}")), "{why}");
    assert_eq!(here(&kept), ids[..2]);
    drop((pins, other));
    kept.fetch(ids[3]).expect("there is room");
    assert!(place.used(&kept) <= most);
}

#[test]
fn what_others_miss_too_is_fetched_with_it() {
    let place = Place::of(4);
    let ids: Vec<u64> = place.all.iter().map(|made| made.id).collect();
    let kept = place.kept(1 << 20);
    for made in &place.all {
        kept.put(made.id, &made.bytes).expect("kept");
    }
    let copies = kept.lock();
    let misses =
        |id: &u64| copies.by_id[id].payload.take() && { copies.by_id[id].payload.get().is_none() };
    assert!(ids[..3].iter().all(misses));
    drop(copies);
    kept.lock().give_back(place.bytes(3));
    assert_eq!(kept.fetch(ids[0]).expect("there").len(), 3);
    assert_eq!(here(&kept), ids);
}

/// All segments of a place, of which the payloads of the last two are here: there is room for two.
fn kept_two(place: &Place) -> (Arc<Kept>, Vec<u64>) {
    let kept = place.kept(place.bytes(3));
    for made in &place.all {
        kept.put(made.id, &made.bytes).expect("kept");
    }
    let ids: Vec<u64> = place.all.iter().map(|made| made.id).collect();
    assert_eq!(here(&kept), ids[2..]);
    (kept, ids)
}

#[test]
fn a_copy_that_another_hand_has_removed_takes_no_room() {
    let place = Place::of(4);
    let (kept, ids) = kept_two(&place);
    fs::remove_file(kept.file(ids[2])).expect("it was there");
    kept.fetch(ids[0]).expect("there is room");
    assert_eq!(here(&kept), [ids[0], ids[3]]);
    assert!(place.used(&kept) <= place.bytes(3));
}

#[test]
fn what_came_is_not_evicted_before_those_who_fetched_it_have_it() {
    let place = Place::of(4);
    let (kept, ids) = kept_two(&place);
    let pins = kept.fetch(ids[3]).expect("it is here");
    let Ok(Begun::Fetching(fetching)) = kept.begin(ids[0]) else { panic!("it is fetched") };
    kept.write(ids[0], &place.all[0].bytes).expect("written");
    let why = kept.fetch(ids[1]).expect_err("there is no room").to_string();
    assert!(why.contains("--cache-size"), "{why}");
    assert_eq!((fetching.pins().len(), here(&kept)), (1, vec![ids[0], ids[3]]));
    drop(fetching);
    place.used(&kept);
    kept.fetch(ids[1]).expect("there is room");
    assert_eq!(here(&kept), [ids[1], ids[3]]);
    place.used(&kept);
    drop(pins);
}

#[test]
fn whoever_waits_for_a_fetch_that_ends_without_a_result_fetches_it() {
    let place = Place::of(4);
    let (kept, ids) = kept_two(&place);
    let Ok(Begun::Fetching(fetching)) = kept.begin(ids[0]) else { panic!("it is fetched") };
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| kept.fetch(ids[0]).expect("it is there").len());
        drop(fetching);
        assert_eq!(waits.join().expect("no panic"), 1);
    });
    place.used(&kept);
    kept.sweep(&BTreeSet::new()).expect("swept");
    let why = kept.fetch(ids[0]).expect_err("it is gone");
    assert_eq!(why.kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_the_object_store_lacks_is_named_and_fetched_once_it_is_there() {
    let place = Place::of(3);
    let ids: Vec<u64> = place.all.iter().map(|made| made.id).collect();
    let kept = place.kept(place.bytes(2));
    for made in &place.all {
        kept.put(made.id, &made.bytes).expect("kept");
    }
    let object = object(ids[0]);
    let mut damaged = place.all[0].bytes.clone();
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    for wrong in [None, Some(damaged), Some(place.all[1].bytes.clone())] {
        match wrong {
            None => kept.remove([ids[0]]).expect("removed"),
            Some(bytes) => kept.bucket.put(&object, bytes.into()).expect("put"),
        }
        let why = kept.fetch(ids[0]).expect_err("it isn't there").to_string();
        assert!(why.starts_with(&segment_name(ids[0])), "{why}");
        assert!(place.used(&kept) <= place.bytes(2));
    }
    kept.bucket.put(&object, place.all[0].bytes.clone().into()).expect("put");
    let pins = kept.fetch(ids[0]).expect("it is there");
    let Ok(Source::Index(index, payload)) = kept.open(ids[0]) else { panic!("an index") };
    let whole = [&index[..], &payload.here().expect("it is held")].concat();
    assert!(whole == place.all[0].bytes);
    drop(pins);
}

#[test]
fn a_start_goes_on_with_copies_that_have_room_and_fetches_indexes_of_the_others() {
    let place = Place::of(4);
    let wanted = place.wanted();
    let kept = place.kept(1 << 20);
    for made in &place.all {
        kept.put(made.id, &made.bytes).expect("kept");
    }
    assert_eq!(here(&kept).len(), 4);
    drop(kept);
    for (most, lost) in [(place.bytes(3), false), (place.bytes(3), true)] {
        if lost {
            fs::remove_dir_all(place.folder.path().join("copies")).expect("it was there");
        }
        let kept = place.kept(most);
        kept.bring(&wanted).expect("brought");
        assert!(place.used(&kept) <= most && !here(&kept).is_empty());
        for (id, ..) in &wanted {
            kept.open(*id).expect("its index");
            kept.fetch(*id).expect("its payload");
        }
        kept.sweep(&BTreeSet::from([wanted[0].0])).expect("swept");
        assert!(place.used(&kept) <= place.bytes(1) * 2);
    }
    let kept = place.kept(200);
    let why = kept.bring(&wanted).expect_err("not even indexes").to_string();
    assert!(why.contains("--cache-size lets 200"), "{why}");
}
