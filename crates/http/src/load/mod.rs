//! Any web service as a target: requests that the suite itself describes, each with the answer
//! that is right, over HTTP/1.1 or HTTP/2, plainly or over TLS.
//!
//! There is no service behind it that this program could serve, and nothing is written before the
//! load: what is right stands in the suite. `docs/http.md` describes it.
//!
//! | file | what it holds |
//! |---|---|
//! | `spec`, `requests`, `request` | the suite's requests: as written, all of them, as sent |
//! | `answer` | whether an answer is right, found while its bytes pass by |
//! | `dialect` | a connection of HTTP/1.1 |
//! | `http2`, `prototype`, `pipe` | a connection of HTTP/2, by a library |
//! | `workload`, `options` | which of these a target is reached by |
//! | `codec`, `metrics` | the codec as operations in a process; counters as Prometheus text |

mod answer;
mod codec;
mod dialect;
mod http2;
mod limits;
mod metrics;
mod options;
mod pipe;
mod prototype;
mod request;
mod requests;
mod spec;
mod workload;

pub use ::load::tls::{Trust, fault_of, secured};
pub use codec::CODECS;
pub use dialect::Http;
pub use limits::{MAX_BODY_BYTES, MAX_REQUESTS, MAX_SAID_BYTES, MAX_UNREAD_BYTES};
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
        "HTTP/1.1 over a stream, or HTTP/2, plainly or over TLS; HTTP/1.0 is understood as well.",
        Reach::Stream,
    )
    .with_options::<options::Options>()
    .with_files(|speaks, folder| {
        let options: options::Options = speaks.read()?;
        speaks.check_authorities(options.tls.as_ref(), folder)
    })],
};
