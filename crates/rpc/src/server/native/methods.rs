//! The methods that own frames carry, by their numbers.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::function::Function;
use crate::protocol::native::greeting::Method;

/// The methods by their numbers: sorted by name, so that a server gives the same numbers at each
/// start.
#[derive(Debug)]
pub(crate) struct Methods(Vec<(Method, Arc<Function>)>);

impl Methods {
    /// Those of `functions`.
    pub(crate) fn of(functions: &HashMap<String, Arc<Function>>) -> Self {
        let row = |(name, function): (&String, &Arc<Function>)| {
            let Function { client_streams, server_streams, .. } = **function;
            let method = Method { name: name.clone(), client_streams, server_streams };
            (method, Arc::clone(function))
        };
        let mut methods: Vec<_> = functions.iter().map(row).collect();
        methods.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Self(methods)
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<Method> {
        self.0.iter().map(|(method, _)| method.clone()).collect()
    }

    /// The method and function of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&(Method, Arc<Function>)> {
        self.0.get(number as usize)
    }
}
