//! A client for the interface over HTTP. Control plane.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value as Json;

use crate::protocol::{BASE, ErrorBody, REVISION, percent_encode};

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 2 << 30;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server can't be reached, or breaks off.
    #[error("{server}: {why}")]
    Connection {
        /// Which.
        server: String,
        /// The error.
        why: String,
    },
    /// The server refuses the request.
    #[error("{}: {}", body.error, body.fix)]
    Refused {
        /// The status.
        status: u16,
        /// Why, and what can be done.
        body: ErrorBody,
    },
    /// What it answers can't be read.
    #[error("{server} answers what can't be read: {why}")]
    Unreadable {
        /// Which.
        server: String,
        /// The error.
        why: String,
    },
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its body.
    pub body: Vec<u8>,
    /// The revision that it was made at, where the server says so.
    pub revision: Option<u64>,
    /// Its digest, as `sha-256=:BASE64:`.
    pub digest: Option<String>,
}

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    server: String,
    token: Option<String>,
    agent: ureq::Agent,
}

impl Client {
    /// A client of the server at `ADDRESS:PORT`. A request may take this long.
    pub fn new(server: &str, token: Option<String>, timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder();
        let config = config.http_status_as_error(false).timeout_global(Some(timeout));
        let agent = config.max_redirects(2).proxy(None).build().into();
        Self { server: server.to_owned(), token, agent }
    }

    /// Asks `path`, below the interface's own, with these parameters; a redirect is followed.
    ///
    /// # Errors
    /// When there is no answer, or it is a refusal.
    pub fn get(&self, path: &str, parameters: &[(&str, String)]) -> Result<Response, ClientError> {
        let mut url = format!("http://{}{BASE}{path}", self.server);
        for (place, (name, value)) in parameters.iter().enumerate() {
            let mark = if place == 0 { '?' } else { '&' };
            url.push_str(&format!("{mark}{name}={}", percent_encode(value)));
        }
        self.read(self.agent.get(url).call())
    }

    /// Asks for JSON.
    ///
    /// # Errors
    /// As [`Client::get`], and when the answer is no JSON.
    pub fn get_json(&self, path: &str, parameters: &[(&str, String)]) -> Result<Json, ClientError> {
        self.json(&self.get(path, parameters)?)
    }

    /// Makes a change, and returns its revision once it is on the server's disk.
    ///
    /// # Errors
    /// When there is no answer, in which case it may have been made or not, or it is refused.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<u64, ClientError> {
        let body = serde_json::to_vec(body).map_err(|why| self.unreadable(why))?;
        let mut request = self.agent.post(format!("http://{}{BASE}{path}", self.server));
        request = request.content_type("application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let made = self.json(&self.read(request.send(&body[..]))?)?;
        made["revision"].as_u64().ok_or_else(|| self.unreadable("it names no revision"))
    }

    fn json(&self, response: &Response) -> Result<Json, ClientError> {
        serde_json::from_slice(&response.body).map_err(|why| self.unreadable(why))
    }

    fn unreadable(&self, why: impl ToString) -> ClientError {
        ClientError::Unreadable { server: self.server.clone(), why: why.to_string() }
    }

    fn read(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Response, ClientError> {
        let broken = |why: ureq::Error| {
            let server = self.server.clone();
            ClientError::Connection { server, why: why.to_string() }
        };
        let mut answer = answer.map_err(broken)?;
        let status = answer.status().as_u16();
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let revision = header(REVISION).and_then(|text| text.parse().ok());
        let digest = header("repr-digest");
        let body = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
        let body = body.map_err(broken)?;
        if status < 300 {
            return Ok(Response { body, revision, digest });
        }
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| ErrorBody {
            error: format!("{} answers with status {status}", self.server),
            fix: String::from_utf8_lossy(&body).trim().chars().take(400).collect(),
        });
        Err(ClientError::Refused { status, body })
    }
}
