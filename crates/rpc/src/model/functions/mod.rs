//! Every function that is served, a row each: its name, its types, and the Rust function.

mod conformance;
mod health;
mod reflection;
mod table;
mod testing;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use super::function::Function;

/// The functions by their paths, with the state that they share.
pub(crate) fn all() -> HashMap<String, Arc<Function>> {
    let total = Arc::new(AtomicI64::new(0));
    #[rustfmt::skip]
    let rows = [
        service("loadline.rpc.v1.Table", vec![
            Function::of_bytes("Echo", table::echo),
            Function::at_once("Add", move |_, number| table::add(&total, number)),
            Function::in_steps("Sleep", table::sleep),
            Function::at_once("Who", table::who),
        ]),
        service("grpc.testing.TestService", vec![
            Function::in_steps("EmptyCall", testing::empty),
            Function::in_steps("UnaryCall", testing::unary),
            Function::in_steps("StreamingOutputCall", testing::output),
            Function::in_steps("StreamingInputCall", testing::input),
            Function::in_steps("FullDuplexCall", testing::full_duplex),
            Function::in_steps("HalfDuplexCall", testing::half_duplex),
        ]),
        service("connectrpc.conformance.v1.ConformanceService", vec![
            Function::in_steps("Unary", conformance::unary),
            Function::in_steps("IdempotentUnary", conformance::idempotent),
            Function::in_steps("ServerStream", conformance::server_stream),
            Function::in_steps("ClientStream", conformance::client_stream),
            Function::in_steps("BidiStream", conformance::bidi),
        ]),
        service("grpc.health.v1.Health", vec![
            Function::in_steps("Check", health::check),
            Function::in_steps("Watch", health::watch),
        ]),
        service("grpc.reflection.v1.ServerReflection", vec![
            Function::in_steps("ServerReflectionInfo", reflection::info),
        ]),
        service("grpc.reflection.v1alpha.ServerReflection", vec![
            Function::in_steps("ServerReflectionInfo", reflection::info),
        ]),
    ];
    rows.into_iter().flatten().collect()
}

/// The functions of a service, by their paths.
fn service(name: &str, functions: Vec<Function>) -> Vec<(String, Arc<Function>)> {
    let path = |function: &Function| format!("/{name}/{}", function.name);
    functions.into_iter().map(|one| (path(&one), Arc::new(one))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not served on purpose.
    const LEFT_OUT: [&str; 2] = [
        "/connectrpc.conformance.v1.ConformanceService/Unimplemented",
        "/grpc.testing.TestService/UnimplementedCall",
    ];

    #[test]
    fn every_method_of_the_descriptors_is_a_row_and_every_row_a_method() {
        let described = reflection::methods();
        let rows = all();
        for path in described.iter().filter(|path| !LEFT_OUT.contains(&&path[..])) {
            assert!(rows.contains_key(&path[..]), "{path}");
        }
        for path in rows.keys() {
            assert!(described.iter().any(|one| one == path), "{path}");
        }
    }
}
