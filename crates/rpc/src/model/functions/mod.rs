//! Every function that is served, a row each: its name, its types, and the Rust function.

#[cfg(feature = "grpc")]
mod conformance;
#[cfg(feature = "grpc")]
mod health;
#[cfg(feature = "grpc")]
mod reflection;
mod table;
#[cfg(feature = "grpc")]
mod testing;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use super::function::Function;

/// The functions by their paths, with the state that they share.
pub(crate) fn all() -> HashMap<String, Arc<Function>> {
    let total = Arc::new(AtomicI64::new(0));
    #[rustfmt::skip]
    let own = service("loadline.rpc.v1.Table", vec![
        Function::of_bytes("Echo", table::echo),
        Function::at_once("Add", move |_, number| table::add(&total, number)),
        Function::in_steps("Sleep", table::sleep),
        Function::at_once("Who", table::who),
    ]);
    own.into_iter().chain(of_grpc()).collect()
}

#[cfg(not(feature = "grpc"))]
fn of_grpc() -> Vec<(String, Arc<Function>)> {
    Vec::new()
}

/// Those of the services that gRPC brings, and of its tests.
#[cfg(feature = "grpc")]
fn of_grpc() -> Vec<(String, Arc<Function>)> {
    #[rustfmt::skip]
    let rows = [
        service("grpc.testing.TestService", vec![
            Function::in_steps("EmptyCall", testing::empty),
            Function::in_steps("UnaryCall", testing::unary),
            Function::in_steps("StreamingOutputCall", testing::output).server_streams(),
            Function::in_steps("StreamingInputCall", testing::input).client_streams(),
            both_stream(Function::in_steps("FullDuplexCall", testing::full_duplex)),
            both_stream(Function::in_steps("HalfDuplexCall", testing::half_duplex)),
        ]),
        service("connectrpc.conformance.v1.ConformanceService", vec![
            Function::in_steps("Unary", conformance::unary),
            Function::in_steps("IdempotentUnary", conformance::idempotent),
            Function::in_steps("ServerStream", conformance::server_stream).server_streams(),
            Function::in_steps("ClientStream", conformance::client_stream).client_streams(),
            both_stream(Function::in_steps("BidiStream", conformance::bidi)),
        ]),
        service("grpc.health.v1.Health", vec![
            Function::in_steps("Check", health::check),
            Function::in_steps("Watch", health::watch).server_streams(),
        ]),
        service("grpc.reflection.v1.ServerReflection", vec![
            both_stream(Function::in_steps("ServerReflectionInfo", reflection::info)),
        ]),
        service("grpc.reflection.v1alpha.ServerReflection", vec![
            both_stream(Function::in_steps("ServerReflectionInfo", reflection::info)),
        ]),
    ];
    rows.into_iter().flatten().collect()
}

#[cfg(feature = "grpc")]
fn both_stream(function: Function) -> Function {
    function.client_streams().server_streams()
}

/// The functions of a service, by their paths.
fn service(name: &str, functions: Vec<Function>) -> Vec<(String, Arc<Function>)> {
    let path = |function: &Function| format!("/{name}/{}", function.name);
    functions.into_iter().map(|one| (path(&one), Arc::new(one))).collect()
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;
    use crate::protocol::proto::DESCRIPTORS;

    /// Not served on purpose.
    const LEFT_OUT: [&str; 2] = [
        "/connectrpc.conformance.v1.ConformanceService/Unimplemented",
        "/grpc.testing.TestService/UnimplementedCall",
    ];

    #[test]
    fn every_method_of_the_descriptors_is_a_row_and_every_row_a_method() {
        let mut rows = all();
        let set = FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let Some(row) = rows.remove(&path) else {
                        assert!(LEFT_OUT.contains(&&path[..]), "{path}");
                        continue;
                    };
                    let streams = (row.client_streams, row.server_streams);
                    let described = (method.client_streaming(), method.server_streaming());
                    assert_eq!(streams, described, "{path}");
                }
            }
        }
        assert!(rows.is_empty(), "{rows:?}");
    }
}
