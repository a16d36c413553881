//! One slot's client of our own server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use load::{Caller, Op, Outcome, Stopwatch, scramble};
use serde::Deserialize;
use serde_json::json;
use wire::ProtocolError;

use super::check::Check;
use super::made::{Made, Piece};
use super::operations::Do;
use super::written::{Written, read, refused, right, wrong_answer};
use crate::client::{Client, ClientError};
use crate::model::{Answer, ColumnSpec, Kind, MAX_TIME, Versioning};
use crate::protocol::{BatchBody, FolderBody, Format, InsertBody, ObjectBody, decode_slice};

/// How long one request may take; the engine's own time-out is shorter.
const WAIT: Duration = Duration::from_secs(60);

/// The set of the folders that are read.
const READ: &str = "/load/read";

/// The folder that slots insert into.
const WRITTEN: &str = "/load/written";

/// One slot, with a channel of its own.
pub(super) struct Slot {
    address: SocketAddr,
    client: Client,
    made: Arc<Made>,
    written: Written,
    /// The last revision that it has seen.
    revision: u64,
    lookups: LookUps,
}

/// What a slot knows of what it has looked up.
#[derive(Default)]
struct LookUps {
    /// How many it has made.
    made: u64,
    /// The revision that they are of, once it is known.
    revision: Option<u64>,
    /// The tags of right answers, by the number of the look-up.
    tags: HashMap<u64, String>,
}

/// What a look-up is answered with.
#[derive(Debug, PartialEq, Deserialize)]
struct Found {
    objects: Vec<FoundObject>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct FoundObject {
    channel: u32,
    since: u64,
    until: u64,
    records: Vec<Vec<f32>>,
}

/// The most tags that a slot remembers; then it begins anew.
const MAX_TAGS: usize = 4_096;

impl Slot {
    pub(super) fn new(address: SocketAddr, made: Arc<Made>, channel: u32) -> Self {
        let client = Client::new(&address.to_string(), None, WAIT);
        let (written, lookups) = (Written::new(channel), LookUps::default());
        Self { address, client, made, written, revision: 0, lookups }
    }

    /// Makes the connection, which the first request would make otherwise.
    pub(super) fn connect(&self) -> Result<(), ProtocolError> {
        let asked = self.client.get("/tags", &[]);
        asked.map(drop).map_err(|error| ProtocolError::new(error.to_string()))
    }

    /// Reads an interval of what is below these paths, a request each.
    fn read(&self, op: Op, paths: &[String]) -> Result<Outcome, ClientError> {
        let interval = self.made.interval(op.what);
        let watch = Stopwatch::start();
        let mut bodies = Vec::with_capacity(paths.len());
        for path in paths {
            let parameters = [
                ("t", self.made.time(interval).to_string()),
                ("under", path.clone()),
                ("format", Format::Binary.name().to_owned()),
            ];
            bodies.push(self.client.slice(&parameters)?.body);
        }
        // Whether it is right is looked at when it is here.
        let took = watch.stop();
        let mut check = Check::new(&self.made, interval);
        for body in bodies {
            match decode_slice(&body) {
                Ok((_, folders)) => folders.iter().for_each(|one| see(&mut check, one)),
                Err(error) => check.unreadable(error.to_string()),
            }
        }
        Ok(self::read(op, interval, check.wrong(), took))
    }

    fn slice(&self, op: Op) -> Result<Outcome, ClientError> {
        self.read(op, &[READ.to_owned()])
    }

    fn read_folders(&self, op: Op) -> Result<Outcome, ClientError> {
        let paths: Vec<String> = (0..self.made.spec.folders).map(path).collect();
        self.read(op, &paths)
    }

    fn insert(&mut self, op: Op, count: u32) -> Result<Outcome, ClientError> {
        let numbers = self.written.next(count);
        let object = |since: u64| {
            let values = Some(json!([self.written.value(since)]));
            let (channel, until) = (self.written.channel, Some(since + 1));
            ObjectBody { channel, since, until, values, records: None }
        };
        let objects = numbers.clone().map(object).collect();
        let batch = BatchBody { folder: WRITTEN.to_owned(), tag: None, only_tag: false, objects };
        let made = self.client.post("/objects", &InsertBody { batches: vec![batch] })?;
        let before = std::mem::replace(&mut self.revision, made);
        if made <= before {
            let expected = format!("more than {before}");
            let received = format!("revision {made}");
            return Ok(wrong_answer(op, &format!("objects {numbers:?}"), &expected, &received));
        }
        Ok(right(count))
    }

    fn find(&self, op: Op) -> Result<Outcome, ClientError> {
        let Some(last) = self.written.last() else { return Ok(Outcome::miss()) };
        let parameters = [
            ("folder", WRITTEN.to_owned()),
            ("t", last.to_string()),
            ("channels", self.written.channel.to_string()),
        ];
        let found = self.client.get_json("/find", &parameters)?;
        let (object, value) = (&found["objects"][0], self.written.value(last));
        if object["since"] != json!(last) || object["records"] != json!([[value]]) {
            let key = format!("object {last} of channel {}", self.written.channel);
            return Ok(wrong_answer(op, &key, &value.to_string(), &object.to_string()));
        }
        Ok(Outcome::right())
    }

    /// Looks up one object by time at the revision that there was first, as jobs do that have to
    /// agree: its answer is the same for ever, whoever keeps it.
    fn look_up(&mut self, op: Op) -> Result<Outcome, ClientError> {
        let revision = match self.lookups.revision {
            Some(revision) => revision,
            None => self.client.get("/tags", &[])?.revision.unwrap_or_default(),
        };
        self.lookups.revision = Some(revision);
        self.lookups.made += 1;
        let drawn = (u64::from(self.written.channel) << 40) ^ self.lookups.made;
        let number = self.made.look_up(scramble(drawn));
        let (folder, channel, interval, time) = self.made.looked_up(number);
        let parameters = [
            ("folder", path(folder)),
            ("t", time.to_string()),
            ("channels", channel.to_string()),
            ("revision", revision.to_string()),
        ];
        let watch = Stopwatch::start();
        let answer = match self.lookups.tags.get(&number) {
            Some(tag) => self.client.get_unless("/find", &parameters, tag)?,
            None => Some(self.client.get("/find", &parameters)?),
        };
        let took = Some(watch.stop());
        // What it had is right still.
        let Some(answer) = answer else { return Ok(Outcome { took, ..Outcome::right() }) };
        let found: Result<Found, _> = serde_json::from_slice(&answer.body);
        let (since, until) = self.made.times(folder, channel, interval);
        let begin = self.made.begin(folder, channel, interval);
        let records = vec![self.made.floats(folder, channel, begin).collect()];
        let expected = Found { objects: vec![FoundObject { channel, since, until, records }] };
        if found.as_ref().ok() != Some(&expected) {
            let key = format!("folder {folder}, channel {channel} at {time}");
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Ok(Outcome { took, ..wrong_answer(op, &key, &expected, &found) });
        }
        if self.lookups.tags.len() >= MAX_TAGS {
            self.lookups.tags.clear();
        }
        self.lookups.tags.extend(answer.tag.map(|tag| (number, tag)));
        Ok(Outcome { took, ..Outcome::right() })
    }

    fn prepare(&self, piece: Piece) -> Result<(), ClientError> {
        match piece {
            Piece::Begin => self.client.post("/folders", &folder(WRITTEN.to_owned(), 1)).map(drop),
            Piece::Objects { folder: number, intervals } => {
                if intervals.start == 0 {
                    self.client.post("/folders", &folder(path(number), self.made.spec.fields))?;
                }
                self.add(number, intervals)
            }
            Piece::End => Ok(()),
        }
    }

    /// Inserts the objects of a folder that begin in these intervals.
    fn add(&self, number: u32, intervals: Range<u32>) -> Result<(), ClientError> {
        let object = |(interval, channel): (u32, u32)| {
            let (since, until) = self.made.times(number, channel, interval);
            let values: Vec<f32> = self.made.floats(number, channel, interval).collect();
            let (until, values) = ((until < MAX_TIME).then_some(until), Some(json!(values)));
            ObjectBody { channel, since, until, values, records: None }
        };
        let objects = self.made.objects(number, intervals).map(object).collect();
        let batch = BatchBody { folder: path(number), tag: None, only_tag: false, objects };
        self.client.post("/objects", &InsertBody { batches: vec![batch] }).map(drop)
    }

    /// Appends an interval, a request for each folder.
    fn append(&self) -> Result<Outcome, ClientError> {
        let interval = self.made.append();
        for folder in 0..self.made.spec.folders {
            self.add(folder, interval..interval + 1)?;
        }
        Ok(Outcome::right())
    }

    /// Leaves the connection of the job before, and reads by a new one.
    fn job(&mut self, op: Op) -> Result<Outcome, ClientError> {
        self.client = Client::new(&self.address.to_string(), None, WAIT);
        self.slice(op)
    }
}

fn path(folder: u32) -> String {
    format!("{READ}/f{folder:05}")
}

fn folder(path: String, floats: u32) -> FolderBody {
    let column = |number| ColumnSpec { name: format!("v{number}"), kind: Kind::Float };
    let columns = (0..floats).map(column).collect();
    let description = "of the load".to_owned();
    FolderBody { path, description, versioning: Versioning::Single, columns }
}

/// Checks what a folder shows.
fn see(check: &mut Check<'_>, answer: &Answer) {
    let number = answer.folder.strip_prefix(READ).and_then(|rest| rest.strip_prefix("/f"));
    let Some(number) = number.and_then(|number| number.parse().ok()) else {
        return check.unreadable(format!("{}: there is no such folder", answer.folder));
    };
    let columns = &answer.payload.columns;
    for (place, object) in answer.objects.iter().enumerate() {
        if object.records != 1 || columns.iter().any(|cells| !cells.nulls().is_empty()) {
            return check.unreadable(format!("{}: {object:?} with nulls", answer.folder));
        }
        let float = |bytes: &[u8]| {
            let bytes = bytes.get(4 * place..4 * place + 4).and_then(|four| four.try_into().ok());
            bytes.map_or(f32::NAN, f32::from_le_bytes)
        };
        let channels = object.channel..object.channel.saturating_add(1);
        let values = columns.iter().map(|cells| float(cells.bytes()));
        check.objects(number, channels, (object.since, object.until), values);
    }
}

/// Without an answer the slot ends.
fn outcome(asked: Result<Outcome, ClientError>) -> Result<Outcome, ProtocolError> {
    match asked {
        Err(ClientError::Refused { .. }) => Ok(refused()),
        asked => asked.map_err(|error| ProtocolError::new(error.to_string())),
    }
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        // What is not there makes every slice wrong, so that a refusal ends the slot as well.
        let prepared = Slot::prepare(self, self.made.piece(part));
        prepared.map_err(|error| ProtocolError::new(error.to_string()))?;
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        outcome(match Do::of(op.operation) {
            Do::Slice => self.slice(op),
            Do::ReadFolders => self.read_folders(op),
            Do::Insert => self.insert(op, 1),
            Do::InsertBulk => self.insert(op, self.made.spec.bulk),
            Do::Find => self.find(op),
            Do::Job => self.job(op),
            Do::Append => self.append(),
            Do::LookUp => self.look_up(op),
        })
    }
}
