//! The bytes of gRPC: messages of protobuf, their prefix, HTTP/2 as a client under load speaks it;
//! and own frames ([`native`]).

#[cfg(feature = "grpc")]
pub(crate) mod compression;
#[cfg(feature = "grpc")]
pub(crate) mod frames;
pub mod http2;
#[cfg(feature = "grpc")]
pub(crate) mod message;
pub mod metadata;
pub mod native;
#[cfg(feature = "grpc")]
pub(crate) mod percent;
#[cfg(feature = "grpc")]
pub(crate) mod proto;
pub mod status;
#[cfg(feature = "grpc")]
pub(crate) mod timeout;
