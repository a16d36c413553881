//! One slot's client of our own server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use load::{Caller, Op, Outcome, Stopwatch, Took, scramble};
use serde::Deserialize;
use serde_json::json;
use wire::ProtocolError;

use super::browse::{self, Shown};
use super::bulk::{READ, bulk, floats, folders_of_insertions, path};
use super::check::Check;
use super::connection::{Body, Connection, Failed, Head, outcome};
use super::made::{Made, Piece};
use super::operations::{Do, OPERATIONS};
use super::written::{Written, loaded, read, with_server_time, wrong_answer};
use crate::client::{Client, ClientError};
use crate::model::{Answer, Versioning};
use crate::protocol::{
    BASE, BatchBody, FolderBody, InsertBody, ObjectBody, decode_slice, encode_insert,
};

/// How long one request may take; the engine's own time-out is shorter.
const WAIT: Duration = Duration::from_secs(60);

/// The folder that slots insert into.
const WRITTEN: &str = "/load/written";

/// The set of what is loaded anew, a set each time.
const LOADED: &str = "/load/anew";

/// What the server says of the bytes of its segments, in its counters.
const SEGMENT_BYTES: &str = "conditions_segment_bytes ";

/// One slot, with a channel of its own.
pub(super) struct Slot {
    /// What is prepared is sent by it.
    client: Client,
    connection: Connection,
    /// The answers of one job, whose memory the next one uses.
    bodies: Vec<Body>,
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

impl From<FoundObject> for Shown {
    fn from(found: FoundObject) -> Self {
        let values = found.records.concat();
        Self { channel: found.channel, since: found.since, until: found.until, values }
    }
}

/// The figure of how many jobs found their connection closed by the server while it was idle.
const CLOSED: &str = "closed_while_idle";

/// The most tags that a slot remembers; then it begins anew.
const MAX_TAGS: usize = 4_096;

impl Slot {
    pub(super) fn new(address: SocketAddr, made: Arc<Made>, channel: u32) -> Self {
        let client = Client::new(&address.to_string(), None, WAIT);
        let (written, lookups) = (Written::new(channel), LookUps::default());
        let (connection, bodies) = (Connection::new(address), vec![Body::default()]);
        Self { client, connection, bodies, made, written, revision: 0, lookups }
    }

    /// Makes the connection, which the first request would make otherwise.
    pub(super) fn connect(&mut self) -> Result<(), ProtocolError> {
        let asked = self.ask(format_args!("/tags"), None).map(|_| Outcome::right());
        outcome(&OPERATIONS[Do::Slice as usize], 1, asked).map(drop)
    }

    /// Asks for what has one answer, which is the first of the bodies then.
    fn ask(&mut self, target: std::fmt::Arguments<'_>, tag: Option<&str>) -> Result<Head, Failed> {
        self.connection.get(format_args!("{BASE}{target}"), tag, &mut self.bodies[0])
    }

    /// Reads an interval of what is below these paths of a set, a request each.
    fn read(&mut self, op: Op, set: &str, paths: &[String]) -> Result<Outcome, Failed> {
        let interval = self.made.interval(op.what);
        let time = self.made.time(interval);
        self.bodies.resize_with(paths.len().max(self.bodies.len()), Body::default);
        let watch = Stopwatch::start();
        let mut server_ns = Some(0.0);
        for (path, body) in paths.iter().zip(&mut self.bodies) {
            let query = format_args!("t={time}&under={path}&format=binary&redirect=false");
            let head = self.connection.get(format_args!("{BASE}/slice?{query}"), None, body)?;
            server_ns = server_ns.zip(head.server_ns).map(|(sum, one)| sum + one);
        }
        // Whether it is right is looked at when it is here.
        let took = watch.stop();
        let mut check = Check::new(&self.made, interval);
        for body in &self.bodies[..paths.len()] {
            match decode_slice(body.bytes()) {
                Ok((_, folders)) => folders.iter().for_each(|one| see(&mut check, set, one)),
                Err(error) => check.unreadable(error.to_string()),
            }
        }
        Ok(with_server_time(self::read(op, interval, check.wrong(), took), server_ns))
    }

    fn slice(&mut self, op: Op) -> Result<Outcome, Failed> {
        self.read(op, READ, &[READ.to_owned()])
    }

    fn read_folders(&mut self, op: Op) -> Result<Outcome, Failed> {
        let paths = (0..self.made.spec.folders).map(|folder| path(READ, folder));
        self.read(op, READ, &paths.collect::<Vec<_>>())
    }

    fn browse(&mut self, op: Op) -> Result<Outcome, Failed> {
        let (folder, intervals) = self.made.browsed(op.what);
        let (since, until) = self.made.range(&intervals);
        let (path, last) = (path(READ, folder), until - 1);
        let watch = Stopwatch::start();
        let head =
            self.ask(format_args!("/browse?folder={path}&since={since}&until={last}"), None)?;
        let took = watch.stop();
        let found: Found = read_json(&self.bodies[0])?;
        let found = found.objects.into_iter().map(Shown::from).collect();
        let outcome = browse::outcome(op, &self.made, folder, intervals, found, took);
        Ok(with_server_time(outcome, head.server_ns))
    }

    fn insert(&mut self, op: Op, count: u32) -> Result<Outcome, Failed> {
        let numbers = self.written.next(count);
        let object = |since: u64| {
            let values = Some(json!([self.written.value(since)]));
            let (channel, until) = (self.written.channel, Some(since + 1));
            ObjectBody { channel, since, until, values, records: None }
        };
        let objects = numbers.clone().map(object).collect();
        let batch = BatchBody { folder: WRITTEN.to_owned(), tag: None, only_tag: false, objects };
        let sent = serde_json::to_vec(&InsertBody { batches: vec![batch] });
        let sent = sent.map_err(std::io::Error::other)?;
        let answer = &mut self.bodies[0];
        self.connection.post(&format!("{BASE}/objects"), &sent, answer)?;
        let answer: Revised = read_json(answer)?;
        let made = answer.revision;
        let before = std::mem::replace(&mut self.revision, made);
        if made <= before {
            let expected = format!("more than {before}");
            let received = format!("revision {made}");
            let wrong = wrong_answer(op, &format!("objects {numbers:?}"), &expected, &received);
            return Ok(Outcome { answers: count, wrong: count, ..wrong });
        }
        Ok(self.written.acknowledged(&numbers))
    }

    fn find(&mut self, op: Op) -> Result<Outcome, Failed> {
        let Some(last) = self.written.last() else { return Ok(Outcome::miss()) };
        let channel = self.written.channel;
        self.ask(format_args!("/find?folder={WRITTEN}&t={last}&channels={channel}"), None)?;
        let found: serde_json::Value = read_json(&self.bodies[0])?;
        let (object, value) = (&found["objects"][0], self.written.value(last));
        if object["since"] != json!(last) || object["records"] != json!([[value]]) {
            let key = format!("object {last} of channel {}", self.written.channel);
            return Ok(wrong_answer(op, &key, &value.to_string(), &object.to_string()));
        }
        Ok(Outcome::right())
    }

    /// Looks up one object by time at the revision that there was first, as jobs do that have to
    /// agree: its answer is the same for ever, whoever keeps it.
    fn look_up(&mut self, op: Op) -> Result<Outcome, Failed> {
        let revision = match self.lookups.revision {
            Some(revision) => revision,
            None => self.ask(format_args!("/tags"), None)?.revision.unwrap_or_default(),
        };
        self.lookups.revision = Some(revision);
        self.lookups.made += 1;
        let drawn = (u64::from(self.written.channel) << 40) ^ self.lookups.made;
        let number = self.made.look_up(scramble(drawn));
        let (folder, channel, interval, time) = self.made.looked_up(number);
        let tag = self.lookups.tags.remove(&number);
        let (target, body) = (path(READ, folder), &mut self.bodies[0]);
        let target =
            format_args!("folder={target}&t={time}&channels={channel}&revision={revision}");
        let watch = Stopwatch::start();
        let head =
            self.connection.get(format_args!("{BASE}/find?{target}"), tag.as_deref(), body)?;
        let took = Some(watch.stop());
        if head.status == 304 {
            // What it had is right still.
            self.lookups.tags.extend(tag.map(|tag| (number, tag)));
            return Ok(Outcome { took, ..Outcome::right() });
        }
        let found: Result<Found, _> = serde_json::from_slice(body.bytes());
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
        self.lookups.tags.extend(head.tag.map(|tag| (number, tag)));
        Ok(Outcome { took, ..Outcome::right() })
    }

    fn prepare(&self, piece: Piece) -> Result<(), ClientError> {
        match piece {
            Piece::Begin => self.client.post("/folders", &folder(WRITTEN.to_owned(), 1)).map(drop),
            Piece::Objects { folder, intervals } => {
                self.fill(READ, &[(folder, intervals)]).map(drop)
            }
            Piece::End => Ok(()),
        }
    }

    /// Inserts the objects of folders that begin in these intervals, at once, and before a folder's
    /// first ones makes it. Returns how long that took, without what the client needs to make
    /// them up.
    fn fill(&self, set: &str, pieces: &[(u32, Range<u32>)]) -> Result<Took, ClientError> {
        let bulk = |(number, intervals): &(u32, Range<u32>)| {
            bulk(&self.made, set, *number, intervals.clone())
        };
        let bulks: Vec<_> = pieces.iter().map(bulk).collect();
        let insertion = encode_insert(bulks.iter());
        let watch = Stopwatch::start();
        for (number, _) in pieces.iter().filter(|(_, intervals)| intervals.start == 0) {
            self.client.post("/folders", &folder(path(set, *number), self.made.spec.fields))?;
        }
        self.client.insert(&insertion)?;
        Ok(watch.stop())
    }

    /// Appends an interval.
    fn append(&self) -> Result<Outcome, Failed> {
        let interval = self.made.append();
        for folders in folders_of_insertions(&self.made) {
            let of = |folder| bulk(&self.made, READ, folder, interval..interval + 1);
            let bulks: Vec<_> = folders.map(of).collect();
            self.client.insert(&encode_insert(bulks.iter())).map_err(failed)?;
        }
        Ok(Outcome::right())
    }

    /// Loads everything into folders of its own, and reads an interval of it. What it takes on the
    /// disk is looked up when it is sealed, which is not waited for to read it.
    fn load(&mut self, op: Op) -> Result<Outcome, Failed> {
        let made = Arc::clone(&self.made);
        let before = self.sealed_bytes()?;
        let set = format!("{LOADED}/n{:05}", made.load());
        let mut loading = Took::default();
        for pieces in made.loads() {
            loading.add(self.fill(&set, &pieces).map_err(failed)?);
        }
        let read = self.read(op, &set, std::slice::from_ref(&set))?;
        Ok(loaded(read, loading, self.sealed_bytes()? - before))
    }

    /// How many bytes there are once all is sealed.
    fn sealed_bytes(&mut self) -> Result<f64, Failed> {
        self.client.compact().map_err(failed)?;
        self.connection.get(format_args!("/metrics"), None, &mut self.bodies[0])?;
        let text = String::from_utf8_lossy(self.bodies[0].bytes());
        let stated = text.lines().find_map(|line| line.strip_prefix(SEGMENT_BYTES));
        let bytes = stated.and_then(|bytes| bytes.parse().ok());
        Ok(bytes.ok_or_else(|| std::io::Error::other("it states no bytes of segments"))?)
    }

    /// Leaves the connection of the job before, and reads by a new one.
    fn job(&mut self, op: Op) -> Result<Outcome, Failed> {
        let closed = self.connection.leave();
        let mut outcome = self.slice(op)?;
        let closed = closed.map(|closed| (CLOSED.to_owned(), f64::from(u8::from(closed))));
        outcome.figures.extend(closed);
        Ok(outcome)
    }
}

fn folder(path: String, columns: u32) -> FolderBody {
    let (columns, description) = (floats(columns), "of the load".to_owned());
    FolderBody { path, description, versioning: Versioning::Single, columns }
}

fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Refused { status, body } => Failed::Answered { status, said: body.error },
        error => Failed::Broken(std::io::Error::other(error.to_string())),
    }
}

/// Checks what a folder of a set shows.
fn see(check: &mut Check<'_>, set: &str, answer: &Answer) {
    let number = answer.folder.strip_prefix(set).and_then(|rest| rest.strip_prefix("/f"));
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

/// What a change is answered with.
#[derive(Deserialize)]
struct Revised {
    revision: u64,
}

/// An answer that has to be of this form.
fn read_json<'a, T: Deserialize<'a>>(body: &'a Body) -> std::io::Result<T> {
    Ok(serde_json::from_slice(body.bytes())?)
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        // What is not there makes every slice wrong, so that a refusal ends the slot as well.
        let prepared = Slot::prepare(self, self.made.piece(part));
        prepared.map_err(|error| ProtocolError::new(error.to_string()))?;
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        let does = Do::of(op.operation);
        let asked = match does {
            Do::Slice => self.slice(op),
            Do::ReadFolders => self.read_folders(op),
            Do::Insert => self.insert(op, 1),
            Do::InsertBulk => self.insert(op, self.made.spec.bulk),
            Do::Find => self.find(op),
            Do::Job => self.job(op),
            Do::Append => self.append(),
            Do::LookUp => self.look_up(op),
            Do::Browse => self.browse(op),
            Do::Load => self.load(op),
        };
        outcome(&OPERATIONS[op.operation], self.made.operations(does), asked)
    }
}
