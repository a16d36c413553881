//! The messages of the .proto files in `crates/rpc/proto` but those of [`super::table`], and the
//! descriptors of all, as `build.rs` makes them.

// What is generated has its own style.
#[allow(dead_code, unreachable_pub, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/proto.rs"));
}

pub(crate) use generated::connectrpc::conformance::v1 as conformance;
pub(crate) use generated::google::rpc::Status as StatusProto;
pub(crate) use generated::grpc::{health::v1 as health, reflection::v1 as reflection, testing};

/// The `FileDescriptorSet` of all files and what they import, imports first.
pub(crate) static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The descriptors, with their types.
pub(crate) fn pool() -> prost_reflect::DescriptorPool {
    // They are written by `build.rs`, and a test reads them.
    prost_reflect::DescriptorPool::decode(DESCRIPTORS).unwrap_or_default()
}
