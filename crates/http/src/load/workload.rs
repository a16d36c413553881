//! A workload whose operations are the requests that a suite names.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ::load::kv::Draws;
use ::load::tls::{HTTP_1, HTTP_2, Secure, Spoken, host_of};
use ::load::{Dialect, Draw, Operation, Part, Speaks, SpecError, Workload};
use wire::ProtocolError;

use super::dialect::Http;
use super::http2::Http2;
use super::options::Options;
use super::prototype::Prototype;
use super::requests::Requests;

/// Reads a suite's requests; files that they name are read from where the suite is.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let requests = Arc::new(Requests::read(part)?);
    Ok(Arc::new(Web { requests, folder: part.folder.to_owned(), way: OnceLock::new() }))
}

/// The requests, and the way to the one target that they are asked of.
#[derive(Debug)]
struct Web {
    requests: Arc<Requests>,
    /// Where the suite is.
    folder: PathBuf,
    /// Made for the first connection and shared by all: reading authorities takes milliseconds.
    way: OnceLock<Result<Way, ProtocolError>>,
}

/// How a target is reached.
#[derive(Clone, Debug)]
struct Way {
    /// As this target is asked.
    requests: Arc<Requests>,
    tls: Option<Secure>,
    /// The requests as HTTP/2 says them, where it is spoken.
    prototypes: Option<Arc<[Prototype]>>,
}

impl Way {
    fn of(speaks: &Speaks, requests: &Arc<Requests>, folder: &Path) -> Result<Self, ProtocolError> {
        let options: Options =
            speaks.read().map_err(|error| ProtocolError::new(error.to_string()))?;
        let requests = match &options.host {
            Some(host) => Arc::new(requests.asked_of(host)),
            None => Arc::clone(requests),
        };
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let prototypes = options.is_http2.then(|| Prototype::all(&requests, scheme)).transpose()?;
        let tls = options.tls.map(|tls| {
            let protocol = if options.is_http2 { HTTP_2 } else { HTTP_1 };
            let host = if tls.name.is_none() { host(&requests)? } else { "" };
            tls.secure(folder, protocol, host)
        });
        let tls = tls.transpose()?;
        Ok(Self { requests, tls, prototypes: prototypes.map(Arc::from) })
    }
}

/// The host that all requests are asked of, without its port.
fn host(requests: &Requests) -> Result<&str, ProtocolError> {
    let mut hosts: Vec<&str> = requests.requests.iter().map(|one| one.parts.host()).collect();
    hosts.dedup();
    let [host] = hosts[..] else {
        return Err(ProtocolError::new(
            "TLS: requests have different hosts: say with name = \"…\" whom the server's \
             certificate is for",
        ));
    };
    Ok(host_of(host))
}

impl Workload for Web {
    fn operations(&self) -> &[Operation] {
        &self.requests.operations
    }

    /// What is right doesn't change; the way there is another target's.
    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        let (requests, folder) = (Arc::clone(&self.requests), self.folder.clone());
        Arc::new(Self { requests, folder, way: OnceLock::new() })
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(Draws::of_one(&self.requests.sampler))
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let way = self.way.get_or_init(|| Way::of(speaks, &self.requests, &self.folder));
        let way = way.as_ref().map_err(ProtocolError::clone)?;
        let spoken: Box<dyn Spoken> = match &way.prototypes {
            None => Box::new(Http::new(&way.requests)),
            Some(prototypes) => Box::new(Http2::new(&way.requests, prototypes)),
        };
        Ok(match &way.tls {
            None => spoken,
            Some(secure) => secure.encrypt(spoken),
        })
    }
}
