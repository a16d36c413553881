//! What segments take: 100 folders × 100 channels × 1,000 intervals × 10 floats are inserted, an
//! interval of all at a time, and sealed whenever 64 MiB have come, as a server does; then slices
//! of 10,000 rows are read, also beside intervals that aren't sealed. With `open`, each object is
//! open until the next one cuts it:
//! `cargo run --release -p loadline-conditions --example segments [DIR [open|closed [INTERVALS]]]`.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use conditions::model::{
    Added, BLOCK_BYTES, Batch, Change, ColumnSpec, Group, Kind, Lead, Loader, MAX_TIME, Object, Of,
    Shown, State, Table, Value, Versioning, View, segment_name,
};
use conditions::protocol::{SliceHead, encode_shown};
use sha2::{Digest as _, Sha256};

const FOLDERS: u32 = 100;
const CHANNELS: u32 = 100;
const INTERVALS: u64 = 1_000;
const FLOATS: usize = 10;
const SEAL_AFTER_BYTES: u64 = 64 << 20;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn change(state: &mut State, change: Change) -> Result<()> {
    let mut group = Group::default();
    match group.add(state, change, 0)? {
        Added::At(_) => state.apply_group(group),
        Added::Later(_) => return Err("a group of one has room".into()),
    }
    Ok(())
}

fn batch(folder: u32, interval: u64, is_open: bool) -> Result<Batch> {
    let mut payload = Table::new([Kind::Float; FLOATS]);
    let (since, mut objects) = (10 * interval, Vec::new());
    let until = if is_open { MAX_TIME } else { since + 10 };
    for channel in 0..CHANNELS {
        objects.push(Object { channel, since, until, records: 1 });
        for (number, cells) in payload.columns.iter_mut().enumerate() {
            let value = (folder + channel) as f32 + interval as f32 / (1 + number) as f32;
            cells.push(&Value::Float(value)).map_err(|_| "no float")?;
        }
    }
    payload.rows = CHANNELS;
    Ok(Batch { folder: path(folder), tag: None, only_tag: false, objects, payload })
}

fn path(folder: u32) -> String {
    format!("/det/{folder:03}")
}

/// What was written, and how long that took.
#[derive(Default)]
struct Sealed {
    bytes: u64,
    time: Duration,
    making: Duration,
    count: u32,
    named: BTreeSet<u64>,
    records: Vec<Vec<u8>>,
}

fn seal(state: &mut State, data: &Path, sealed: &mut Sealed) -> Result<()> {
    let begun = Instant::now();
    let mut seal = state.seal(BLOCK_BYTES)?;
    state.begin_seal(&seal);
    loop {
        let making = Instant::now();
        let Some(made) = seal.next(state)? else { break };
        sealed.making += making.elapsed();
        let file = data.join(segment_name(made.id));
        std::fs::write(&file, &made.bytes)?;
        std::fs::File::open(&file)?.sync_data()?;
        sealed.bytes += made.bytes.len() as u64;
        seal.stored(made.id, Bytes::from(made.bytes))?;
    }
    let rebuilt = state.rebuild(&seal);
    drop(state.end_seal(&seal, Some(rebuilt)));
    let named = seal.segments();
    for gone in sealed.named.difference(&named) {
        std::fs::remove_file(data.join(segment_name(*gone)))?;
    }
    sealed.named = named;
    sealed.records = seal.records();
    sealed.count += 1;
    sealed.time += begun.elapsed();
    Ok(())
}

/// How long the steps of an answer take that was not made before: where each time leads with what
/// is there, in bytes, and their digest. The medians of these intervals, and of those of the same
/// intervals a second time, when all that was read has been checked.
fn slices(state: &State, name: &str, intervals: impl Iterator<Item = u64> + Clone) -> Result<()> {
    let view = View { revision: state.revision(), of: Of::Head };
    for round in ["not read before", "read before"] {
        let mut took = [const { Vec::new() }; 4];
        for interval in intervals.clone() {
            let begun = Instant::now();
            let (lead, shown) = Lead::show(state, "/", 10 * interval + 5, view)?;
            took[0].push(begun.elapsed());
            let (place, _) = lead.place();
            let head = SliceHead { revision: place.revision, since: place.since };
            let bytes = encode_shown(head, &shown)?;
            took[1].push(begun.elapsed() - took[0][took[0].len() - 1]);
            let digesting = Instant::now();
            std::hint::black_box(Sha256::digest(&bytes));
            took[2].push(digesting.elapsed());
            took[3].push(begun.elapsed());
            let rows: usize = shown.iter().map(Shown::rows).sum();
            assert_eq!((rows, place.since), ((FOLDERS * CHANNELS) as usize, 10 * interval));
        }
        let [look_up, encode, digest, all] = took.map(|mut took| {
            took.sort_unstable();
            took[took.len() / 2]
        });
        println!(
            "{name}, {round}: {all:.1?}: look-up {look_up:.1?}, bytes {encode:.1?}, digest \
             {digest:.1?}"
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let data = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let data = data.join(format!("segments-{}", std::process::id()));
    std::fs::create_dir_all(&data)?;
    let is_open = arguments.get(1).is_some_and(|word| word == "open");
    let intervals = arguments.get(2).map_or(Ok(INTERVALS), |text| text.parse())?;
    let (mut state, mut sealed) = (State::default(), Sealed::default());
    let column = |number| ColumnSpec { name: format!("f{number}"), kind: Kind::Float };
    for folder in 0..FOLDERS {
        let columns = (0..FLOATS).map(column).collect();
        let (path, description, versioning) = (path(folder), String::new(), Versioning::Single);
        change(&mut state, Change::CreateFolder { path, description, versioning, columns })?;
    }
    let begun = Instant::now();
    for interval in 0..intervals {
        let batches = (0..FOLDERS).map(|folder| batch(folder, interval, is_open));
        change(&mut state, Change::Insert(batches.collect::<Result<_>>()?))?;
        if state.unsealed_bytes() >= SEAL_AFTER_BYTES || interval + 1 == intervals {
            seal(&mut state, &data, &mut sealed)?;
        }
    }
    let all = begun.elapsed();
    let sizes = sealed.named.iter().map(|id| std::fs::metadata(data.join(segment_name(*id))));
    let bytes: u64 = sizes.map(|file| Ok(file?.len())).sum::<Result<u64>>()?;
    println!(
        "{:.0} MB, {:.1} bytes a row, in {} segments; {} seals of {:.2} s, {:.2} s of it with the \
         state; {:.1} × written; all {:.1} s",
        bytes as f64 / 1e6,
        bytes as f64 / (intervals * u64::from(FOLDERS * CHANNELS)) as f64,
        sealed.named.len(),
        sealed.count,
        sealed.time.as_secs_f64() / f64::from(sealed.count),
        sealed.making.as_secs_f64() / f64::from(sealed.count),
        sealed.bytes as f64 / bytes as f64,
        all.as_secs_f64(),
    );
    drop(state);
    let begun = Instant::now();
    let mut loader = Loader::default();
    for record in &sealed.records {
        loader.apply(record)?;
    }
    let mut reading = Duration::ZERO;
    let mut state = loader.finish(&mut |id, _| {
        let begun = Instant::now();
        let bytes = std::fs::read(data.join(segment_name(id))).map_err(|why| why.to_string());
        reading += begun.elapsed();
        bytes.map(Bytes::from)
    })?;
    println!(
        "opened in {:.3} s and {:.3} s for reading the files",
        (begun.elapsed() - reading).as_secs_f64(),
        reading.as_secs_f64(),
    );
    // Apart, so that each is of other pages and chunks; then one after another.
    slices(&state, "apart", (0..25).map(|number| number * intervals / 25))?;
    slices(&state, "in order", intervals / 2..intervals / 2 + 50)?;
    // Beside a live writer: the next intervals of all channels are not sealed.
    for interval in intervals..intervals + 5 {
        let batches = (0..FOLDERS).map(|folder| batch(folder, interval, is_open));
        change(&mut state, Change::Insert(batches.collect::<Result<_>>()?))?;
    }
    slices(&state, "in order, behind a writer", intervals / 2..intervals / 2 + 50)?;
    slices(&state, "what isn't sealed", intervals..intervals + 5)?;
    std::fs::remove_dir_all(&data)?;
    Ok(())
}
