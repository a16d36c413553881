//! The methods that own frames carry: those of one message for one message.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::model::function::Function;
use crate::protocol::proto::DESCRIPTORS;

/// The methods by their numbers: sorted by name, so that a server gives the same numbers at each
/// start.
#[derive(Debug)]
pub(in crate::server) struct Methods(Vec<(String, Arc<Function>)>);

impl Methods {
    /// Those of `functions` that the descriptors have as unary.
    pub(in crate::server) fn of(functions: &HashMap<String, Arc<Function>>) -> Self {
        // Made by this crate's own build; without it there would be no methods, which tests see.
        let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
        let mut methods = Vec::new();
        for file in &set.file {
            for service in &file.service {
                let is_unary = |method: &&prost_types::MethodDescriptorProto| {
                    !method.client_streaming() && !method.server_streaming()
                };
                for method in service.method.iter().filter(is_unary) {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    if let Some(function) = functions.get(&path) {
                        methods.push((path, Arc::clone(function)));
                    }
                }
            }
        }
        methods.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(methods)
    }

    /// Their names.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The name and function of a number.
    pub(super) fn get(&self, number: u32) -> Option<&(String, Arc<Function>)> {
        self.0.get(number as usize)
    }
}
