//! The methods that own frames carry, by their numbers.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::model::function::Function;
use crate::protocol::native::greeting::Method;
use crate::protocol::proto::DESCRIPTORS;

/// The methods by their numbers: sorted by name, so that a server gives the same numbers at each
/// start.
#[derive(Debug)]
pub(in crate::server) struct Methods(Vec<(Method, Arc<Function>)>);

impl Methods {
    /// Those of `functions` that the descriptors have.
    pub(in crate::server) fn of(functions: &HashMap<String, Arc<Function>>) -> Self {
        // Made by this crate's own build; without it there would be no methods, which tests see.
        let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
        let mut methods = Vec::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let name = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let Some(function) = functions.get(&name) else { continue };
                    let client_streams = method.client_streaming();
                    let server_streams = method.server_streaming();
                    let method = Method { name, client_streams, server_streams };
                    methods.push((method, Arc::clone(function)));
                }
            }
        }
        methods.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Self(methods)
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<Method> {
        self.0.iter().map(|(method, _)| method.clone()).collect()
    }

    /// The method and function of a number.
    pub(super) fn get(&self, number: u32) -> Option<&(Method, Arc<Function>)> {
        self.0.get(number as usize)
    }
}
