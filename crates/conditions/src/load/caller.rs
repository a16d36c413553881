//! One slot's client.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use load::{Caller, Finding, Op, Outcome};
use serde_json::json;
use wire::ProtocolError;

use super::made::{Made, READ, WRITTEN};
use super::operations::OPERATIONS;
use crate::client::{Client, ClientError, Response};
use crate::protocol::{BatchBody, Format, InsertBody, ObjectBody, decode_slice};

/// How long one request may take; the engine's own time-out is shorter.
const WAIT: Duration = Duration::from_secs(60);

/// One slot, with a channel of its own.
pub(super) struct Slot {
    client: Client,
    made: Made,
    channel: u32,
    /// How many objects it has inserted: the n-th is [n, n + 1).
    inserted: u64,
    /// The last revision that it has seen.
    revision: u64,
}

impl Slot {
    pub(super) fn new(address: SocketAddr, made: Made, channel: u32) -> Self {
        let client = Client::new(&address.to_string(), None, WAIT);
        Self { client, made, channel, inserted: 0, revision: 0 }
    }

    /// The value of the slot's object of this number.
    fn value(&self, number: u64) -> f64 {
        (number % (1 << 24)) as f64 + f64::from(self.channel % 2) / 2.0
    }

    fn slice(&self, op: Op) -> Result<Outcome, ClientError> {
        let interval = self.made.interval(op.what);
        let parameters = [
            ("t", self.made.time(interval).to_string()),
            ("under", READ.to_owned()),
            ("format", Format::Binary.name().to_owned()),
        ];
        let start = Instant::now();
        let Response { body, .. } = self.client.get("/slice", &parameters)?;
        // Whether it is right is looked at when it is here.
        let took_ns = start.elapsed().as_nanos() as u64;
        let wrong = match decode_slice(&body) {
            Ok((_, folders)) => self.made.wrong(interval, &folders),
            Err(error) => Some(error.to_string()),
        };
        let outcome = match wrong {
            None => Outcome::right(),
            Some(why) => wrong_answer(op, &format!("interval {interval}"), "its values", &why),
        };
        Ok(Outcome { took_ns: Some(took_ns), ..outcome })
    }

    fn insert(&mut self, op: Op) -> Result<Outcome, ClientError> {
        let (since, channel) = (self.inserted, self.channel);
        let value = Some(json!([self.value(since)]));
        let object =
            ObjectBody { channel, since, until: Some(since + 1), values: value, records: None };
        let folder = WRITTEN.to_owned();
        let batch = BatchBody { folder, tag: None, only_tag: false, objects: vec![object] };
        // Whatever comes of it, the next one is another.
        self.inserted += 1;
        let made = self.client.post("/objects", &InsertBody { batches: vec![batch] })?;
        let before = std::mem::replace(&mut self.revision, made);
        if made <= before {
            let (right, found) = (format!("more than {before}"), format!("revision {made}"));
            return Ok(wrong_answer(op, &format!("object {since}"), &right, &found));
        }
        Ok(Outcome::right())
    }

    fn find(&self, op: Op) -> Result<Outcome, ClientError> {
        let Some(last) = self.inserted.checked_sub(1) else { return Ok(Outcome::miss()) };
        let parameters = [
            ("folder", WRITTEN.to_owned()),
            ("t", last.to_string()),
            ("channels", self.channel.to_string()),
        ];
        let found = self.client.get_json("/find", &parameters)?;
        let (object, value) = (&found["objects"][0], self.value(last));
        if object["since"] != json!(last) || object["records"] != json!([[value]]) {
            let key = format!("object {last} of channel {}", self.channel);
            return Ok(wrong_answer(op, &key, &value.to_string(), &object.to_string()));
        }
        Ok(Outcome::right())
    }
}

fn wrong_answer(op: Op, key: &str, expected: &str, received: &str) -> Outcome {
    Outcome::wrong(Finding {
        operation: OPERATIONS[op.operation].name.clone(),
        key: key.as_bytes().to_vec(),
        expected: expected.as_bytes().to_vec(),
        received: received.as_bytes().to_vec(),
        note: "not what the seed and the slot's own insertions lead to".to_owned(),
    })
}

/// A refusal is an answer; without an answer the slot ends.
fn outcome(asked: Result<Outcome, ClientError>) -> Result<Outcome, ProtocolError> {
    match asked {
        Ok(outcome) => Ok(outcome),
        Err(ClientError::Refused { .. }) => {
            Ok(Outcome { answers: 1, refused: 1, ..Outcome::default() })
        }
        Err(error) => Err(ProtocolError::new(error.to_string())),
    }
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        let (folder, batch) = self.made.part(part);
        let made = || {
            if let Some(folder) = &folder {
                self.client.post("/folders", folder)?;
            }
            if let Some(batch) = batch {
                self.client.post("/objects", &InsertBody { batches: vec![batch] })?;
            }
            Ok(Outcome::right())
        };
        // What is not there makes every slice wrong.
        made().map_err(|error: ClientError| ProtocolError::new(error.to_string()))
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        outcome(match &OPERATIONS[op.operation].name[..] {
            "slice" => self.slice(op),
            "insert" => self.insert(op),
            _ => self.find(op),
        })
    }
}
