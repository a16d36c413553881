//! How fast bulk insertion is, and what takes the time: `cargo run --release -p
//! loadline-conditions --example bulk [ROWS]`, by default 2,600,000 rows of ten floats in 10
//! folders of 100 channels.

use std::time::{Duration, Instant};

use conditions::client::Client;
use conditions::model::{Added, Change, ColumnSpec, Group, Kind, Object, State, Value, Versioning};
use conditions::protocol::{Bulk, FolderBody, decode_insert, encode_insert};
use conditions::server::BoundConditions;
use service::{Face, HttpSettings};

/// Objects of a part: less than the 16 MiB that a change may have.
const PART: usize = 200_000;
const FOLDERS: usize = 10;
const CHANNELS: usize = 100;
const FLOATS: usize = 10;

fn folder(number: usize) -> FolderBody {
    let column = |n| ColumnSpec { name: format!("v{n}"), kind: Kind::Float };
    let columns = (0..FLOATS).map(column).collect();
    let (path, description) = (format!("/bulk/f{number}"), String::new());
    FolderBody { path, description, versioning: Versioning::Single, columns }
}

/// The objects of numbers `first..last` of a folder: all channels of an interval, then the next.
fn bulk(number: usize, first: usize, last: usize) -> Bulk {
    let FolderBody { path, columns, .. } = folder(number);
    let mut bulk = Bulk::new(&path, None, false, columns);
    for n in first..last {
        let (channel, interval) = ((n % CHANNELS) as u32, (n / CHANNELS) as u64);
        let (since, until) = (interval * 10, interval * 10 + 10);
        bulk.batch.objects.push(Object { channel, since, until, records: 1 });
        for (column, cells) in bulk.batch.payload.columns.iter_mut().enumerate() {
            cells.push(&Value::Float((n + column) as f32)).expect("a float");
        }
        bulk.batch.payload.rows += 1;
    }
    bulk
}

fn main() -> anyhow::Result<()> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(2_600_000), |text| text.parse())?;
    let per_folder = rows / FOLDERS;
    let mut bulks = Vec::new();
    for number in 0..FOLDERS {
        for first in (0..per_folder).step_by(PART) {
            bulks.push(bulk(number, first, per_folder.min(first + PART)));
        }
    }
    let rows: usize = bulks.iter().map(|bulk| bulk.batch.objects.len()).sum();
    let rate = |what: &str, took: Duration| {
        let ns = took.as_nanos() as f64 / rows as f64;
        println!("{what:<28} {:>7.3} s {ns:>7.1} ns a row", took.as_secs_f64());
    };
    let start = Instant::now();
    let parts: Vec<Vec<u8>> = bulks.iter().map(|bulk| encode_insert([bulk].into_iter())).collect();
    rate("the client encodes", start.elapsed());
    steps(&parts, rate)?;

    let data = tempfile::tempdir()?;
    let address = ([127, 0, 0, 1], 0).into();
    let settings = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
    let server = BoundConditions::bind(vec![settings])?.start(data.path())?;
    let at = server.addresses()[0].to_string();
    let client = Client::new(&at, None, Duration::from_secs(60));
    for number in 0..FOLDERS {
        client.post("/folders", &folder(number))?;
    }
    let start = Instant::now();
    for part in &parts {
        client.insert(part)?;
    }
    let took = start.elapsed();
    rate("one connection", took);
    println!("{rows} rows, {:.2} million a second", rows as f64 / took.as_secs_f64() / 1e6);
    server.stop(Duration::from_secs(10));
    Ok(())
}

/// What a server does with parts, a step at a time, without a disk.
fn steps(parts: &[Vec<u8>], rate: impl Fn(&str, Duration)) -> anyhow::Result<()> {
    let mut state = State::default();
    for number in 0..FOLDERS {
        let FolderBody { path, description, versioning, columns } = folder(number);
        let change = Change::CreateFolder { path, description, versioning, columns };
        let mut group = Group::default();
        group.add(&state, change, 0)?;
        state.apply_group(group);
    }
    let mut took = [Duration::ZERO; 4];
    let mut step = |place: usize, start: Instant| took[place] += start.elapsed();
    for part in parts {
        let start = Instant::now();
        let bulks = decode_insert(part)?;
        step(0, start);
        let change = Change::Insert(bulks.into_iter().map(|bulk| bulk.batch).collect());
        let start = Instant::now();
        let bytes = change.encode();
        step(1, start);
        let (mut group, start) = (Group::default(), Instant::now());
        let added = group.add(&state, change, 0)?;
        step(2, start);
        assert!(matches!(added, Added::At(_)) && !bytes.is_empty());
        let start = Instant::now();
        state.apply_group(group);
        step(3, start);
    }
    for (what, took) in ["decode", "encode for the journal", "check", "apply"].iter().zip(took) {
        rate(what, took);
    }
    Ok(())
}
