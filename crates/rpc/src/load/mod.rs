//! The workload of calls, and the dialects that speak it: to any gRPC server which has the methods,
//! and to our own by its own frames.
//!
//! | file | what it holds |
//! |---|---|
//! | `spec` | `[workload]`: how large messages are, and how many a stream has |
//! | `options` | `speaks`: metadata and deadline of each call, or a token |
//! | `operations` | the operations and their methods |
//! | `made` | what calls say and what right answers are, byte for byte |
//! | `totals` | what a server's total should be: calls done twice, or not at all, are found |
//! | `call`, `calls` | one call under way; those of a connection, whatever carries them |
//! | `any` | the operation `call`: any method of any server |
//! | `answers` | what header blocks mean in gRPC |
//! | `grpc`, `frames` | the dialects |
//! | `codec` | another workload: codecs, without a socket |

mod answers;
mod any;
mod call;
mod calls;
mod codec;
mod frames;
mod grpc;
mod made;
mod operations;
mod options;
mod spec;
mod totals;

pub use codec::CODECS;
pub use frames::Frames;
pub use grpc::Grpc;
pub use operations::{ADD, BIDI, CALL, CLIENT_STREAM, SERVER_STREAM, UNARY};

use load::{DialectRow, Reach, Service};

/// The service.
pub static SERVICE: Service = Service {
    name: "rpc",
    doc: "Remote calls over gRPC: single ones, totals, and streams of messages.",
    read: spec::read,
    dialects: &[
        DialectRow::new(
            "grpc",
            "gRPC over HTTP/2, in cleartext by prior knowledge, or over TLS.",
            Reach::Stream,
        )
        .with_options::<options::GrpcOptions>()
        .with_files(|speaks, folder| {
            let options: options::GrpcOptions = speaks.read()?;
            speaks.check_authorities(options.tls.as_ref(), folder)
        }),
        DialectRow::new(
            spec::FRAMES,
            "Own frames, on the same port: single calls and totals.",
            Reach::Stream,
        )
        .with_options::<options::FramesOptions>(),
    ],
};
