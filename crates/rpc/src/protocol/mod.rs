//! The bytes of gRPC: messages of protobuf, their prefix, HTTP/2 as a client under load speaks it;
//! and own frames ([`native`]).

#[cfg(feature = "grpc")]
pub(crate) mod compression;
#[cfg(feature = "grpc")]
pub(crate) mod frames;
pub mod http2;
pub(crate) mod message;
pub mod metadata;
pub mod native;
pub(crate) mod percent;
pub(crate) mod prefix;
#[cfg(feature = "grpc")]
pub(crate) mod proto;
pub mod status;
pub(crate) mod table;
pub(crate) mod timeout;
