//! One slot's client of the interface over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Caller, Op, Outcome, Stopwatch};
use serde_json::{Value as Json, json};
use wire::ProtocolError;

use super::super::connection::{Body, Connection, Failed, outcome};
use super::made::{Made, OPERATIONS, Piece, TAG};
use crate::client::direct;
use crate::nopayload::protocol::BASE;

/// How long one request may take; the engine's own time-out is shorter.
const WAIT: Duration = Duration::from_secs(60);

/// The most bytes of an answer: the largest scenario's has 30 kB.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// One slot.
pub(super) struct Slot {
    /// What is prepared is sent by it.
    agent: ureq::Agent,
    connection: Connection,
    body: Body,
    base: String,
    made: Arc<Made>,
    /// The list that is being filled.
    list: String,
}

/// An answer's status and body.
type Answered = Result<(u16, Vec<u8>), ureq::Error>;

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answered {
    let mut answer = answer?;
    let body = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
    Ok((answer.status().as_u16(), body))
}

impl Slot {
    pub(super) fn new(address: SocketAddr, made: Arc<Made>) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = direct(config.timeout_global(Some(WAIT)).proxy(None).build());
        let (connection, body) = (Connection::new(address), Body::default());
        let base = format!("http://{address}{BASE}");
        Self { agent, connection, body, base, made, list: String::new() }
    }

    /// Makes a change, which has to be taken.
    fn change(&self, is_put: bool, path: &str, body: &Json) -> Result<Json, ProtocolError> {
        let url = format!("{}{path}", self.base);
        let request = if is_put { self.agent.put(url) } else { self.agent.post(url) };
        let body = serde_json::to_vec(body).map_err(|error| fault(&error))?;
        let sent = read(request.content_type("application/json").send(&body[..]));
        match sent.map_err(|error| fault(&error))? {
            (200..300, body) if body.is_empty() => Ok(Json::Null),
            (200..300, body) => serde_json::from_slice(&body).map_err(|error| fault(&error)),
            (status, body) => {
                let said = String::from_utf8_lossy(&body).chars().take(400).collect::<String>();
                Err(ProtocolError::new(format!("{path} is answered with {status}: {said}")))
            }
        }
    }

    fn fill(&mut self, piece: Piece) -> Result<(), ProtocolError> {
        match piece {
            Piece::Begin => {
                self.change(false, "/global-tags/statuses", &json!({ "name": "unlocked" }))?;
                let tag = json!({ "name": TAG, "status": "unlocked", "author": "load" });
                self.change(false, "/gt", &tag).map(drop)
            }
            Piece::Iovs { of_type, iovs } => {
                if iovs.start == 0 {
                    self.begin_list(of_type)?;
                }
                let row = |iov| {
                    let (url, checksum) = self.made.payload(of_type, iov);
                    json!({
                        "payload_url": url, "checksum": checksum, "payload_list": self.list,
                        "major_iov": iov, "minor_iov": 0,
                    })
                };
                let rows: Vec<Json> = iovs.map(row).collect();
                self.change(false, "/payload-iovs/bulk", &Json::Array(rows)).map(drop)
            }
            Piece::End => Ok(()),
        }
    }

    /// Makes a payload type and its list, and attaches that to the tag.
    fn begin_list(&mut self, of_type: u32) -> Result<(), ProtocolError> {
        let name = Made::type_name(of_type);
        self.change(false, "/payload-types", &json!({ "name": name }))?;
        let list = self.change(false, "/payload-lists", &json!({ "payload_type": name }))?;
        let list = list["name"].as_str();
        self.list = list.ok_or_else(|| ProtocolError::new("a list has no name"))?.to_owned();
        let attached = json!({ "payload_list": self.list, "global_tag": TAG });
        self.change(true, "/payload-lists/attach", &attached).map(drop)
    }
}

impl Slot {
    fn query(&mut self, op: Op) -> Result<Outcome, Failed> {
        let (major, body) = (op.what as u32, &mut self.body);
        let target =
            format_args!("{BASE}/payload-iovs/query/?gtName={TAG}&majorIOV={major}&minorIOV=0");
        let watch = Stopwatch::start();
        self.connection.get(target, None, body)?;
        // Whether it is right is looked at when it is here.
        let took = watch.stop();
        if self.made.is_written(major, body.bytes()) {
            return Ok(Outcome { took: Some(took), ..Outcome::right() });
        }
        let rows = serde_json::from_slice(body.bytes()).map_err(|error| error.to_string());
        Ok(self.made.outcome(op, rows, took))
    }
}

fn fault(error: &dyn std::error::Error) -> ProtocolError {
    ProtocolError::new(error.to_string())
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        self.fill(self.made.piece(part))?;
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        outcome(&OPERATIONS[op.operation], 1, self.query(op))
    }
}
