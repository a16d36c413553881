//! A suite's requests as HTTP/2 sends them: method, URI, headers and body, made once as far as
//! they are the same for every key.

use ::load::kv::Keys;
use http_types::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http_types::{Request as Message, Uri};
use wire::{Bytes, ProtocolError};

use super::request::{KEY, Request, Template};
use super::requests::Requests;

/// Headers of a connection, which HTTP/2 doesn't have (RFC 9113, 8.2.2).
const OF_CONNECTIONS: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/// One request.
#[derive(Debug)]
pub(super) struct Prototype {
    /// With any key in the places of keys.
    message: Message<()>,
    /// The URI, where it holds a key.
    uri: Option<Template>,
    /// The headers that hold a key.
    headers: Vec<(HeaderName, Template)>,
    pub(super) body: Option<Template>,
}

impl Prototype {
    /// Those of all requests of a suite, in their order. `scheme` is `http` or `https`.
    ///
    /// # Errors
    /// Names a request that HTTP/2 can't say.
    pub(super) fn all(requests: &Requests, scheme: &str) -> Result<Vec<Self>, ProtocolError> {
        let of = |request: &Request| {
            Self::of(request, scheme).map_err(|why| {
                ProtocolError::new(format!("the request \"{}\": {why}", request.name))
            })
        };
        requests.requests.iter().map(of).collect()
    }

    fn of(request: &Request, scheme: &str) -> Result<Self, String> {
        let parts = &request.parts;
        let uri = format!("{scheme}://{}{}", parts.host(), parts.path);
        let (example, template) = any_key(&uri);
        let mut message = Message::builder().method(&parts.method[..]).uri(&example[..]);
        let mut headers = Vec::new();
        for (name, value) in &parts.headers {
            let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header"))?;
            // HTTP/2 has the host in the URI.
            if name == "host" {
                continue;
            }
            if OF_CONNECTIONS.contains(&name.as_str()) {
                return Err(format!("HTTP/2 has no header {name}: leave it out"));
            }
            let (example, template) = any_key(value);
            headers.extend(template.map(|template| (name.clone(), template)));
            message = message.header(name, example.as_bytes());
        }
        if let Some(bytes) = parts.body_bytes {
            message = message.header(CONTENT_LENGTH, bytes);
        }
        let message = message.body(()).map_err(|error| error.to_string())?;
        Ok(Self { message, uri: template, headers, body: parts.body.clone() })
    }

    /// The request about `key`.
    pub(super) fn about(&self, keys: &Keys, key: u64) -> Message<()> {
        let mut message = self.message.clone();
        // Keys are letters and digits: they fit wherever the first one did.
        if let Some(uri) = &self.uri
            && let Ok(uri) = Uri::from_maybe_shared(uri.bytes(keys, key))
        {
            *message.uri_mut() = uri;
        }
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_maybe_shared(value.bytes(keys, key)) {
                message.headers_mut().insert(name.clone(), value);
            }
        }
        message
    }

    /// The body about `key`.
    pub(super) fn body(&self, keys: &Keys, key: u64) -> Option<Bytes> {
        self.body.as_ref().map(|body| body.bytes(keys, key))
    }
}

/// The text with a key in it, and the template where it holds one.
fn any_key(text: &str) -> (String, Option<Template>) {
    (text.replace(KEY, "k"), text.contains(KEY).then(|| Template::text(text)))
}
