//! The workload of a server whose data are its own (`written_by = "target"`): jobs read what is
//! there, and nothing is written. What the values should be is unknown. So it is checked that each
//! answer has the digest that it names, shows what is valid at the time that was asked for, and is
//! the same whenever it is of the same place.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use load::{
    Caller, Draw, Finding, Kind, Op, Operation, Outcome, Part, Speaks, SpecError, Stopwatch,
    UniformDraw, Workload,
};
use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use wire::{Address, ProtocolError};

use super::connection::{Body, Connection, Failed, outcome};
use crate::client::{Client, ClientError};
use crate::model::{Answer, MAX_TIME, Object};
use crate::protocol::{BASE, decode_slice, percent_encode};

/// How long one request may take; the engine's own time-out is shorter.
const WAIT: Duration = Duration::from_secs(60);

/// The most folders that jobs ask one by one, and in which times are looked for.
const MAX_FOLDERS: usize = 100;

/// The most times that jobs read at.
const MAX_TIMES: usize = 10_000;

/// What is read of one folder's export to find times in it.
const MAX_SAMPLE_BYTES: usize = 256 << 10;

/// The most places whose digests are remembered.
const MAX_PLACES: usize = 10_000;

/// [`Op::operation`] is an index into them.
static OPERATIONS: [Operation; 2] = [
    Operation::new("slice", Kind::Read, "Reads what all folders show at a time, at once."),
    Operation::new("read-folders", Kind::Read, "Reads the same with a request for each folder."),
];

/// `[workload]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// Who has written what is read.
    #[serde(rename = "written_by")]
    _written_by: WrittenBy,
    /// The set or folder that is read, with all below it.
    #[serde(default = "root")]
    under: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenBy {
    Target,
}

fn root() -> String {
    "/".to_owned()
}

pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let Spec { under, .. } = part.read()?;
    if !under.starts_with('/') {
        return Err(part.error("under", format!("{under:?} is no path: they begin with /")));
    }
    Ok(Arc::new(There { under, found: Mutex::default(), places: Mutex::default() }))
}

/// The workload about one target.
#[derive(Debug)]
struct There {
    under: String,
    /// What jobs read; the first slot looks for it.
    found: Mutex<Option<Arc<Found>>>,
    /// The digest of each place that was read, by its revision and time.
    places: Mutex<HashMap<(String, u64, u64), String>>,
}

/// What a server has.
#[derive(Debug)]
struct Found {
    folders: Vec<String>,
    /// Times at which something is shown.
    times: Vec<u64>,
}

impl Workload for There {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        let under = self.under.clone();
        Arc::new(Self { under, found: Mutex::default(), places: Mutex::default() })
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: u64::MAX })
    }

    fn caller(
        self: Arc<Self>,
        speaks: &Speaks,
        address: &Address,
    ) -> Result<Box<dyn Caller>, ProtocolError> {
        let (Address::Internet(address), "conditions") = (address, speaks.dialect.name) else {
            let name = speaks.dialect.name;
            return Err(ProtocolError::new(format!("{name} reads only what was written for it")));
        };
        let client = Client::new(&address.to_string(), None, WAIT);
        let found = self.found(&client, *address)?;
        let (connection, bodies) = (Connection::new(*address), Vec::new());
        Ok(Box::new(Slot { connection, bodies, there: self, found }))
    }
}

impl There {
    /// What the server has, found by the first slot that asks.
    fn found(&self, client: &Client, at: SocketAddr) -> Result<Arc<Found>, ProtocolError> {
        let mut kept = locked(&self.found);
        let found = match &*kept {
            Some(found) => Arc::clone(found),
            None => Arc::new(find(client, &self.under, at)?),
        };
        *kept = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Whether a slice of this path and time is whole, of its time, and as it was before.
    fn check(
        &self,
        path: &str,
        time: u64,
        (named, body): (Option<&str>, &[u8]),
    ) -> Result<u64, String> {
        let (head, folders) = decode_slice(body).map_err(|error| error.to_string())?;
        let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)));
        if named.is_some_and(|named| named != digest) {
            return Err(format!("its bytes are {digest}, and it names {named:?}"));
        }
        let is_other = |object: &&Object| !(object.since..object.until).contains(&time);
        let other = |one: &Answer| Some((one.folder.clone(), *one.objects.iter().find(is_other)?));
        if let Some((folder, object)) = folders.iter().find_map(other) {
            return Err(format!("{folder}: {object:?} is not valid at {time}"));
        }
        let mut places = locked(&self.places);
        let place = (path.to_owned(), head.revision, head.since);
        match places.get(&place) {
            Some(before) if *before != digest => {
                return Err(format!("place {place:?} was {before}, and is {digest}"));
            }
            None if places.len() < MAX_PLACES => drop(places.insert(place, digest)),
            _ => {}
        }
        Ok(folders.iter().map(|one| one.objects.len() as u64).sum())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks for folders, and for times at which they show something.
fn find(client: &Client, under: &str, at: SocketAddr) -> Result<Found, ProtocolError> {
    let fault = |error: ClientError| ProtocolError::new(error.to_string());
    let listed = client.get_json("/folders", &[("under", under.to_owned())]).map_err(fault)?;
    let paths = listed["folders"].as_array().into_iter().flatten();
    let paths = paths.filter(|folder| folder["objects"] != 0);
    let paths = paths.filter_map(|folder| Some(folder["path"].as_str()?.to_owned()));
    let folders: Vec<String> = paths.take(MAX_FOLDERS).collect();
    let mut times = Vec::new();
    for folder in &folders {
        times.extend(sample(client, folder).map_err(fault)?);
    }
    times.sort_unstable();
    times.dedup();
    if times.is_empty() {
        let why = format!(
            "the server at {at} shows nothing below {under}: insert something, as `loadline \
             conditions create` and `loadline conditions insert` do"
        );
        return Err(ProtocolError::new(why));
    }
    // Those of all folders, spread as they lie.
    let step = times.len().div_ceil(MAX_TIMES);
    Ok(Found { folders, times: times.into_iter().step_by(step).collect() })
}

/// When the first objects of a folder begin.
fn sample(client: &Client, folder: &str) -> Result<Vec<u64>, ClientError> {
    let mut lines = Lines(Vec::new());
    let asked = [("under", folder.to_owned()), ("format", "jsonl".to_owned())];
    // It ends with an error where there was more than is wanted.
    if let Err(error) = client.export(&asked, &mut lines)
        && let Ok(error) = error.downcast::<ClientError>()
    {
        return Err(error);
    }
    let read = |line: &[u8]| serde_json::from_slice::<Json>(line).ok()?["since"].as_u64();
    let times = lines.0.split(|byte| *byte == b'\n').filter_map(read);
    Ok(times.filter(|time| *time < MAX_TIME).collect())
}

/// The first bytes of what is written to it; then it takes no more.
struct Lines(Vec<u8>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_SAMPLE_BYTES - self.0.len();
        if room == 0 {
            return Err(io::Error::other("enough"));
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Slot {
    connection: Connection,
    /// The answers of one job, whose memory the next one uses.
    bodies: Vec<Body>,
    there: Arc<There>,
    found: Arc<Found>,
}

impl Slot {
    /// Reads what is at and below these paths at a time, a request each.
    fn read(&mut self, op: Op, paths: &[String]) -> Result<Outcome, Failed> {
        let times = &self.found.times;
        let time = times[(op.what % times.len() as u64) as usize];
        self.bodies.resize_with(paths.len().max(self.bodies.len()), Body::default);
        let watch = Stopwatch::start();
        let mut digests = Vec::with_capacity(paths.len());
        for (path, body) in paths.iter().zip(&mut self.bodies) {
            let under = percent_encode(path);
            let query = format_args!("t={time}&under={under}&format=binary&redirect=false");
            let head = self.connection.get(format_args!("{BASE}/slice?{query}"), None, body)?;
            digests.push(head.digest);
        }
        // Whether it is right is looked at when it is here.
        let took = watch.stop();
        let mut objects = 0;
        let mut outcome = Outcome::right();
        for ((path, digest), body) in paths.iter().zip(digests).zip(&self.bodies) {
            match self.there.check(path, time, (digest.as_deref(), body.bytes())) {
                Ok(more) => objects += more,
                Err(why) => {
                    outcome = Outcome::wrong(Finding {
                        operation: OPERATIONS[op.operation].name.clone(),
                        key: format!("{path} at {time}").into_bytes(),
                        expected: b"a slice of that time".to_vec(),
                        received: why.clone().into_bytes(),
                        note: why,
                    });
                }
            }
        }
        if objects == 0 && outcome.wrong == 0 {
            outcome = Outcome::miss();
        }
        Ok(Outcome { took: Some(took), ..outcome })
    }
}

impl Caller for Slot {
    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        let (there, found) = (Arc::clone(&self.there), Arc::clone(&self.found));
        let asked = match op.operation {
            0 => self.read(op, std::slice::from_ref(&there.under)),
            _ => self.read(op, &found.folders),
        };
        outcome(&OPERATIONS[op.operation], 1, asked)
    }
}
