//! Any web service as a target: requests that the suite itself describes, each with the answer
//! that is right, over HTTP/1.1.
//!
//! There is no service behind it that this program could serve, and nothing is written before the
//! load: what is right stands in the suite. `docs/http.md` describes it.

mod answer;
mod codec;
mod dialect;
mod limits;
mod metrics;
mod request;
mod requests;
mod spec;
mod workload;

pub use codec::CODECS;
pub use dialect::Http;
pub use limits::{MAX_BODY_BYTES, MAX_REQUESTS, MAX_SAID_BYTES};
pub use metrics::Metrics;
pub use requests::Requests;

use ::load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "http",
    doc: "Any web service: the suite describes its requests and their right answers.",
    read: workload::read,
    dialects: &[DialectRow::new(
        "http",
        "HTTP/1.1 over a stream; answers of HTTP/1.0 are understood as well.",
        Reach::Stream,
    )],
};
