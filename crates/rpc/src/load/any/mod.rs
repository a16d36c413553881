//! The operation `call`: any method of any gRPC server, with messages that are stated or made of
//! the schema, and answers that are compared with what the suite says, or not checked.
//!
//! | file | what it holds |
//! |---|---|
//! | `source`, `plan` | the keys of `[workload]`, and what follows from them and a method |
//! | `generate` | messages of a schema and a seed |
//! | `memory` | what a message takes in memory |
//! | `expect`, `expression` | what a right answer is |
//! | `learn` | the schema, asked of the server's reflection by the connection itself |

#[cfg(feature = "grpc")]
mod expect;
#[cfg(feature = "grpc")]
mod expression;
#[cfg(feature = "grpc")]
mod generate;
#[cfg(feature = "grpc")]
mod learn;
#[cfg(feature = "grpc")]
mod memory;
#[cfg(feature = "grpc")]
mod plan;
#[cfg(feature = "grpc")]
mod source;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

/// Both versions of reflection, which have the same bytes.
pub(super) const REFLECTION: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// The keys of `[workload]` that are about the operation `call`.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) struct AnySpec {
    /// The method: `package.Service/Method`.
    pub(super) method: Option<String>,
    /// The .proto file that describes it, relative to the suite; else the server's reflection does.
    pub(super) proto: Option<PathBuf>,
    /// Where its imports are looked for, too.
    pub(super) imports: Vec<PathBuf>,
    /// The request as JSON; else requests are made of the schema.
    pub(super) message: Option<String>,
    /// How many different requests are made.
    pub(super) requests: Option<u32>,
    /// What a right answer is.
    pub(super) expect: ExpectSpec,
}

/// `expect`: what a right answer is; where it is left out, answers are not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) struct ExpectSpec {
    /// The request.
    #[serde(default)]
    pub(super) echo: bool,
    /// This message, as JSON.
    pub(super) message: Option<String>,
    /// Fields of the answer, each an expression of the request's.
    #[serde(default)]
    pub(super) fields: std::collections::BTreeMap<String, String>,
}

/// What is sent, and what is right.
pub(super) struct Any {
    /// Requests, each with the prefixes of its messages.
    pub(super) requests: Vec<Bytes>,
    pub(super) check: Box<dyn Check>,
}

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "made by `grpc` alone"))]
pub(super) enum Checked {
    Right,
    /// The suite doesn't say what is right.
    Unchecked,
    /// What a right one has, and in what way this isn't one.
    Wrong(Vec<u8>, String),
}

/// Compares answers with what is right.
pub(super) trait Check: Send + Sync {
    /// Looks at the bytes of a whole answer, with the prefixes of its messages.
    fn check(&self, request: usize, answer: &[u8]) -> Checked;
}

/// How a connection learns what a method takes.
pub(super) trait Learn: Send + Sync {
    /// Begins to ask.
    fn begin(&self) -> Box<dyn Learning>;
}

/// Questions to a server's reflection, one after another.
pub(super) trait Learning: Send {
    /// The next question: the method's path, and the message with its prefix.
    fn question(&self) -> (&'static str, Bytes);

    /// Its answer, with the prefix; what is known then, once that is enough.
    ///
    /// # Errors
    /// Why it isn't to be known.
    fn answered(&mut self, answer: &[u8]) -> Result<Option<Any>, String>;

    /// It is refused, with this status; whether there is another way to ask.
    fn refused(&mut self, status: u32) -> bool;
}

/// What is known of the operation before the load.
#[derive(Clone)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "made by `grpc` alone"))]
pub(super) enum Source {
    /// All of it.
    Known(Arc<Any>),
    /// The server has to be asked.
    Asked(Arc<dyn Learn>),
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Any").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(any) => any.fmt(f),
            Self::Asked(_) => f.write_str("reflection"),
        }
    }
}

impl AnySpec {
    /// The path of the method.
    pub(super) fn path(&self) -> Option<String> {
        let bare = self.method.as_deref()?.trim_start_matches('/');
        let (service, method) = bare.rsplit_once('/').or_else(|| bare.rsplit_once('.'))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || "._".contains(one))
        };
        (is_name(service) && is_name(method)).then(|| format!("/{service}/{method}"))
    }

    /// Whether anything is printed.
    pub(super) fn is_said(&self) -> bool {
        let Self { method, proto, imports, message, requests, expect } = self;
        let ExpectSpec { echo, message: example, fields } = expect;
        method.is_some()
            || proto.is_some()
            || !imports.is_empty()
            || message.is_some()
            || requests.is_some()
            || *echo
            || example.is_some()
            || !fields.is_empty()
    }
}

#[cfg(feature = "grpc")]
pub(super) use source::source;

/// Without the library that reads schemas.
#[cfg(not(feature = "grpc"))]
pub(super) fn source(
    _: &AnySpec,
    _: &load::Part<'_>,
    _: Option<usize>,
    _: usize,
) -> Result<Source, load::SpecError> {
    let words = "this program was built without the feature rpc, which the operation call needs: \
                 build it with --features rpc";
    Err(load::SpecError::new("workload.method", words))
}

#[cfg(all(test, feature = "grpc"))]
mod tests;
