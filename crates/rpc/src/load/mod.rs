//! The workload of calls, and the dialect that speaks it to any gRPC server.
