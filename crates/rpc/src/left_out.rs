//! The commands' answer where this program was built without server and client.

use service::Failure;

/// The failure of both commands.
pub(crate) fn left_out() -> Failure {
    let words = "this loadline is built without gRPC: build it with `cargo build --release \
                 --features rpc`";
    Failure::Usage(words.to_owned())
}
