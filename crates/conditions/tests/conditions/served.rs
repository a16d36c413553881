//! A server that was started for a test, and requests that show their headers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use conditions::client::Client;
use conditions::server::{BoundConditions, ConditionsServer, DATA_VERSION};
use journal::SyncPolicy;
use serde_json::{Value as Json, json};
use service::{Face, HttpSettings, Tokens};

pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// A server of this directory, at any port.
pub(crate) fn serve(data: &Path, tokens: Option<Tokens>) -> ConditionsServer {
    start(bind(tokens), data)
}

/// A server that seals what is in memory once it has this many bytes.
pub(crate) fn serve_sealing(data: &Path, seal_after: u64) -> ConditionsServer {
    start(bind(None).seal_after(seal_after), data)
}

/// A server whose changes are on the disk when the system likes.
pub(crate) fn serve_unsynced(data: &Path) -> ConditionsServer {
    start(bind(None).synced(SyncPolicy::Never), data)
}

fn start(bound: BoundConditions, data: &Path) -> ConditionsServer {
    // As the command makes its data directory.
    std::fs::create_dir_all(data).expect("a folder");
    std::fs::write(data.join("FORMAT"), format!("conditions {DATA_VERSION}\n")).expect("a file");
    bound.start(data).expect("a server")
}

fn bind(tokens: Option<Tokens>) -> BoundConditions {
    let address = ([127, 0, 0, 1], 0).into();
    let settings = HttpSettings { address, takes_names: false, tokens, face: Face::Api };
    BoundConditions::bind(vec![settings]).expect("an address")
}

pub(crate) fn client(at: SocketAddr) -> Client {
    Client::new(&at.to_string(), None, WAIT)
}

/// An answer with everything that it says.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Said {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
    config.max_redirects_will_error(false).timeout_global(Some(WAIT)).build().into()
}

fn said(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<Said> {
    let mut answer = answer.ok()?;
    let body = answer.body_mut().with_config().limit(1 << 30).read_to_vec().ok()?;
    Some(Said { status: answer.status().as_u16(), headers: answer.headers().clone(), body })
}

/// Asks without following redirects.
pub(crate) fn get(at: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Said {
    let mut request = agent().get(format!("http://{at}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    said(request.call()).expect("an answer")
}

/// Asks with any method; bytes are sent where the method has a body.
pub(crate) fn ask(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Said {
    try_ask(at, method, path, headers, body).expect("an answer")
}

/// The same, of a server that may be killed meanwhile.
pub(crate) fn try_ask(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<Said> {
    let request = ureq::http::Request::builder().method(method).uri(format!("http://{at}{path}"));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    if ["GET", "DELETE"].contains(&method) {
        return said(agent().run(request.body(()).expect("a request")));
    }
    said(agent().run(request.body(body).expect("a request")))
}

/// Posts these bytes to a path of the interface.
pub(crate) fn post(at: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Said {
    let mut request = agent().post(format!("http://{at}/api/v1{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    said(request.send(body)).expect("an answer")
}

/// Makes a change that is taken; returns its revision.
pub(crate) fn change(at: SocketAddr, path: &str, body: &Json) -> u64 {
    client(at).post(path, body).expect("a change")
}

/// Makes a folder with one column of floats.
pub(crate) fn folder(at: SocketAddr, path: &str, versioning: &str) -> u64 {
    let columns = json!([{ "name": "value", "kind": "float" }]);
    change(at, "/folders", &json!({ "path": path, "versioning": versioning, "columns": columns }))
}

/// Inserts one object.
pub(crate) fn insert(
    at: SocketAddr,
    folder: &str,
    channel: u32,
    (since, until): (u64, Option<u64>),
    value: f64,
) -> u64 {
    let object = json!({ "channel": channel, "since": since, "until": until, "values": [value] });
    change(at, "/objects", &json!({ "batches": [{ "folder": folder, "objects": [object] }] }))
}
