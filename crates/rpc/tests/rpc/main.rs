//! The service from outside: real clients, its own, and hostile ones. Without gRPC, own
//! frames alone.

#[cfg(feature = "grpc")]
mod cli;
mod futures;
#[cfg(feature = "grpc")]
mod given_up;
#[cfg(feature = "grpc")]
mod grpcio;
#[cfg(feature = "grpc")]
mod grpcjs;
#[cfg(feature = "grpc")]
mod grpcurl;
#[cfg(feature = "grpc")]
mod hostile;
#[cfg(feature = "grpc")]
mod inspect;
#[cfg(feature = "grpc")]
mod interop;
#[cfg(feature = "grpc")]
mod limits;
#[cfg(feature = "grpc")]
mod metadata;
mod mpi;
mod native;
#[cfg(feature = "grpc")]
mod native_hostile;
#[cfg(feature = "grpc")]
mod native_streams;
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
mod peers;
mod ping;
#[cfg(feature = "grpc")]
mod proof;
#[cfg(feature = "conformance")]
mod protobuf_conformance;
#[cfg(feature = "grpc")]
mod raw;
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
mod served;
mod session;
mod shared_memory;
#[cfg(feature = "grpc")]
mod stopping;
#[cfg(feature = "grpc")]
mod tls;
#[cfg(feature = "grpc")]
mod upb;
#[cfg(not(feature = "grpc"))]
mod without_grpc;
