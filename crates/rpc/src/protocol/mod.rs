//! The bytes of gRPC: messages of protobuf, their prefix, HTTP/2 as a client under load speaks it.

pub mod http2;
