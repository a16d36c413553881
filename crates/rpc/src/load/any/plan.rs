//! What the keys of `[workload]` and a method come to: requests, and what is right.

use std::sync::OnceLock;

use bytes::{BufMut as _, Bytes, BytesMut};
use load::scramble;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};

use super::expect::{Expect, Right};
use super::expression::{Expression, path};
use super::generate::generate;
use super::{Any, AnySpec};
use crate::load::made::PREFIX_BYTES;

/// Different requests that are made unless the suite says how many.
pub(super) const REQUESTS: u32 = 64;

/// The most bytes of all requests.
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
}

/// The key that is wrong, and why.
type Wrong = (String, String);

impl Plan {
    pub(super) fn new(spec: AnySpec, length: Option<usize>, messages: usize, seed: u64) -> Self {
        Self { spec, length, messages, seed }
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
        let requests = self.requests(method)?;
        let mut sent = Vec::new();
        for messages in &requests {
            let mut bytes = BytesMut::new();
            for message in messages {
                put(&message.encode_to_vec(), &mut bytes);
            }
            sent.push(bytes.freeze());
        }
        let right = self.right(method)?;
        let check = Expect {
            right,
            output: method.output(),
            is_unary: !method.is_server_streaming(),
            requests,
            sent: sent.clone(),
            seen: OnceLock::new(),
        };
        Ok(Any { requests: sent, check: Box::new(check) })
    }

    /// The messages of each request.
    fn requests(&self, method: &MethodDescriptor) -> Result<Vec<Vec<DynamicMessage>>, Wrong> {
        let input = method.input();
        let messages = if method.is_client_streaming() { self.messages } else { 1 };
        if let Some(text) = &self.spec.message {
            let message = read(text, &input).map_err(|why| ("message".to_owned(), why))?;
            let all = (message.encoded_len() + PREFIX_BYTES).saturating_mul(messages);
            return match all > MOST_BYTES {
                true => Err(too_large("message")),
                false => Ok(vec![vec![message; messages]]),
            };
        }
        let mut bytes = 0;
        let mut requests = Vec::new();
        for number in 0..u64::from(self.spec.requests.unwrap_or(REQUESTS)) {
            let mut request = Vec::new();
            for place in 0..messages as u64 {
                let seed = scramble(self.seed ^ scramble(number)) ^ place;
                let made = generate(&input, seed, self.length, MOST_BYTES - bytes);
                let made = made.ok_or_else(|| too_large("requests"))?.encode_to_vec();
                bytes += made.len() + PREFIX_BYTES;
                if bytes > MOST_BYTES {
                    return Err(too_large("requests"));
                }
                // As it is read: a field at its default is as one that isn't there.
                let message = DynamicMessage::decode(input.clone(), &made[..]);
                let message = message.map_err(|why| ("requests".to_owned(), why.to_string()))?;
                request.push(message);
            }
            requests.push(request);
        }
        Ok(requests)
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

fn too_large(key: &str) -> Wrong {
    (key.to_owned(), format!("all requests have more than {MOST_BYTES} bytes: say less"))
}

/// A message as JSON.
fn read(text: &str, message: &MessageDescriptor) -> Result<DynamicMessage, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = DynamicMessage::deserialize(message.clone(), &mut deserializer);
    let read = read.and_then(|read| deserializer.end().map(|()| read));
    read.map_err(|why| format!("{why} (it is to be a {})", message.full_name()))
}

/// Appends a message behind its prefix.
pub(super) fn put(message: &[u8], into: &mut BytesMut) {
    into.put_u8(0);
    // All requests together are shorter.
    into.put_u32(message.len() as u32);
    into.put_slice(message);
}

/// A message behind its prefix.
pub(super) fn prefixed(message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    put(message, &mut bytes);
    bytes.freeze()
}
