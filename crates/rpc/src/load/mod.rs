//! The workload of calls, and the dialect that speaks it to any gRPC server which has the methods.
//!
//! | file | what it holds |
//! |---|---|
//! | `spec` | `[workload]`: how large messages are, and how many a stream has |
//! | `operations` | the operations and their methods |
//! | `made` | what calls say and what right answers are, byte for byte |
//! | `totals` | what a server's total should be: calls done twice, or not at all, are found |
//! | `call`, `answers` | one call under way; what header blocks mean in gRPC |
//! | `grpc` | the dialect |

mod answers;
mod call;
mod grpc;
mod made;
mod operations;
mod spec;
mod totals;

pub use grpc::Grpc;
pub use operations::{ADD, BIDI, CLIENT_STREAM, SERVER_STREAM, UNARY};

use load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "rpc",
    doc: "Remote calls over gRPC: single ones, totals, and streams of messages.",
    read: spec::read,
    dialects: &[DialectRow::new(
        "grpc",
        "gRPC over HTTP/2, in cleartext by prior knowledge.",
        Reach::Stream,
    )
    .with_options::<spec::Options>()],
};
