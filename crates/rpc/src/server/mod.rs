//! The gRPC server.
