//! Any web service as a target: requests that the suite itself describes, each with the answer
//! that is right, over HTTP/1.1.
//!
//! There is no service behind it that this program could serve, and nothing is written before the
//! load: what is right stands in the suite. `docs/http.md` says what a suite may say.

mod answer;
mod codec;
mod dialect;
mod metrics;
mod named;
mod request;
mod spec;

pub use codec::CODECS;
pub use dialect::Http;
pub use metrics::Metrics;
pub use request::Request;
pub use spec::{ExpectSpec, RequestSpec};

pub(crate) use spec::resolve;

use crate::{Client, DialectRow, Service};

/// An answer's body may be this long; a longer one is wrong, and its connection is given up.
pub const MOST_BODY_BYTES: u64 = 1 << 30;

/// A body that a suite says or expects may be this long.
pub const MOST_SAID_BYTES: u64 = 16 << 20;

/// At most this many requests in one suite.
pub const MOST_REQUESTS: usize = 256;

/// The service.
pub static SERVICE: Service = Service {
    name: "http",
    doc: "Any web service: the suite describes its requests and their right answers.",
    operations: &[],
    dialects: &[DialectRow {
        name: "http",
        doc: "HTTP/1.1 over a stream; answers of HTTP/1.0 are understood as well.",
        client: Client::Stream(|oracle| Box::new(Http::new(oracle))),
        counters: None,
    }],
    longest_key_bytes: 250,
    longest_value_bytes: 0,
    prepares: false,
};
