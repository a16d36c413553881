//! The service from outside: real clients, its own, and hostile ones.

mod cli;
mod futures;
mod grpcio;
mod grpcjs;
mod grpcurl;
mod hostile;
mod inspect;
mod interop;
mod limits;
mod metadata;
mod mpi;
mod native;
mod native_hostile;
mod native_streams;
mod peers;
mod ping;
mod proof;
#[cfg(feature = "conformance")]
mod protobuf_conformance;
mod raw;
mod served;
mod shared_memory;
mod stopping;
mod tls;
mod upb;
