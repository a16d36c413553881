//! What the keys of `[workload]` and a method come to: requests, and what is right.

use std::sync::OnceLock;

use bytes::Bytes;
use load::scramble;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};

use super::expect::{Asked, Expect, Right};
use super::expression::{Expression, path};
use super::generate::generate;
use super::memory::memory_bytes;
use super::{Any, AnySpec};
use crate::load::made::PREFIX_BYTES;

/// Different requests that are made unless the suite says how many.
pub(super) const REQUESTS: u32 = 64;

/// The most memory of all requests, in bytes: as they are sent and, where answers are compared with
/// them, as messages.
const MOST_BYTES: usize = 256 << 20;

/// What follows once a method is known.
#[derive(Clone)]
pub(super) struct Plan {
    spec: AnySpec,
    /// The length of texts and bytes in requests, where it is stated.
    length: Option<usize>,
    /// Messages of each request, where the method takes several.
    messages: usize,
    seed: u64,
    /// [`MOST_BYTES`].
    most_bytes: usize,
}

/// The key that is wrong, and why.
type Wrong = (String, String);

impl Plan {
    pub(super) fn new(spec: AnySpec, length: Option<usize>, messages: usize, seed: u64) -> Self {
        Self { spec, length, messages, seed, most_bytes: MOST_BYTES }
    }

    /// The same with another limit.
    #[cfg(test)]
    pub(super) fn within(self, most_bytes: usize) -> Self {
        Self { most_bytes, ..self }
    }

    /// The service and its method.
    pub(super) fn method(&self) -> &str {
        self.spec.method.as_deref().unwrap_or_default()
    }

    /// Requests of a method, and what is right.
    ///
    /// # Errors
    /// The key that doesn't fit the method.
    pub(super) fn any(&self, method: &MethodDescriptor) -> Result<Any, Wrong> {
        let right = self.right(method)?;
        let are_kept = matches!(right, Right::Echo | Right::Fields(_));
        let (sent, asked) = self.requests(method, are_kept)?;
        let check = Expect {
            right,
            output: method.output(),
            is_unary: !method.is_server_streaming(),
            asked,
            sent: sent.clone(),
            seen: OnceLock::new(),
        };
        Ok(Any { requests: sent, check: Box::new(check) })
    }

    /// Each request as it is sent, and its messages, which take memory only if they are kept.
    fn requests(
        &self,
        method: &MethodDescriptor,
        are_kept: bool,
    ) -> Result<(Vec<Bytes>, Vec<Asked>), Wrong> {
        let input = method.input();
        let count = if method.is_client_streaming() { self.messages } else { 1 };
        if let Some(text) = &self.spec.message {
            let message = read(text, &input).map_err(|why| ("message".to_owned(), why))?;
            let one = prefixed(&message.encode_to_vec());
            let bytes = one.len().saturating_mul(count).saturating_add(memory_bytes(&message));
            if bytes > self.most_bytes {
                return Err(self.too_large("message"));
            }
            let asked = Asked { messages: vec![message], count };
            return Ok((vec![one.repeat(count).into()], vec![asked]));
        }
        let (mut sent, mut asked, mut left) = (Vec::new(), Vec::new(), self.most_bytes);
        for number in 0..u64::from(self.spec.requests.unwrap_or(REQUESTS)) {
            let (mut bytes, mut messages) = (Vec::new(), Vec::new());
            for place in 0..count as u64 {
                let seed = scramble(self.seed ^ scramble(number)) ^ place;
                let made = generate(&input, seed, self.length, left);
                let made = made.ok_or_else(|| self.too_large("requests"))?.encode_to_vec();
                put(&made, &mut bytes);
                let mut taken = made.len() + PREFIX_BYTES;
                if are_kept {
                    // As it is read: a field at its default is as one that isn't there.
                    let message = DynamicMessage::decode(input.clone(), &made[..]);
                    let message =
                        message.map_err(|why| ("requests".to_owned(), why.to_string()))?;
                    taken += memory_bytes(&message);
                    messages.push(message);
                }
                left = left.checked_sub(taken).ok_or_else(|| self.too_large("requests"))?;
            }
            sent.push(bytes.into_boxed_slice().into());
            asked.push(Asked { messages, count });
        }
        Ok((sent, asked))
    }

    fn too_large(&self, key: &str) -> Wrong {
        let most = self.most_bytes;
        let why = format!("all take more than {most} bytes of memory: have fewer or smaller ones");
        (key.to_owned(), why)
    }

    fn right(&self, method: &MethodDescriptor) -> Result<Right, Wrong> {
        let (input, output) = (method.input(), method.output());
        let expect = &self.spec.expect;
        if expect.echo {
            if input != output {
                let (takes, returns) = (input.full_name(), output.full_name());
                let words = format!("it takes {takes} and returns {returns}: that is no echo");
                return Err(("expect.echo".to_owned(), words));
            }
            return Ok(Right::Echo);
        }
        if let Some(text) = &expect.message {
            let message = read(text, &output);
            return message.map(Right::Message).map_err(|why| ("expect.message".to_owned(), why));
        }
        if expect.fields.is_empty() {
            return Ok(Right::Unchecked);
        }
        let fields = expect.fields.iter().map(|(name, text)| {
            let wrong = |why| (format!("expect.fields.{name}"), why);
            let path = path(name, &output).map_err(wrong)?;
            Ok((path, Expression::parse(text, &input).map_err(wrong)?))
        });
        fields.collect::<Result<_, Wrong>>().map(Right::Fields)
    }
}

/// A message as JSON.
fn read(text: &str, message: &MessageDescriptor) -> Result<DynamicMessage, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = DynamicMessage::deserialize(message.clone(), &mut deserializer);
    let read = read.and_then(|read| deserializer.end().map(|()| read));
    read.map_err(|why| format!("{why} (it is to be a {})", message.full_name()))
}

/// Appends a message behind its prefix.
fn put(message: &[u8], into: &mut Vec<u8>) {
    into.push(0);
    // All requests together are shorter.
    into.extend_from_slice(&(message.len() as u32).to_be_bytes());
    into.extend_from_slice(message);
}

/// A message behind its prefix.
pub(super) fn prefixed(message: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    put(message, &mut bytes);
    bytes.into()
}
