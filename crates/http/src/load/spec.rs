//! The requests of a suite: what was written, and what it means. Control plane.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::load::Kind;
use ::load::kv::Keys;
use base::units::ByteCount;
use serde::Deserialize;

use crate::protocol::{RequestHead, is_field_value, is_token};

use super::limits::{MAX_BODY_BYTES, MAX_SAID_BYTES};
use super::request::{Expected, ExpectedBody, KEY, Parts, Request, Template};

/// `[[workload.request]]` as written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestSpec {
    /// What the mix calls it.
    pub(super) name: String,
    /// What is asked for, with its query; `{key}` is a key of `[workload.keys]`.
    pub(super) path: String,
    /// `GET` by default.
    pub(super) method: Option<String>,
    /// Headers beside `host`, which is that of the target's dialect unless it is among them.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// The body, as text in which `{key}` is a key.
    pub(super) body: Option<String>,
    /// The body, from a file beside the suite.
    pub(super) body_file: Option<PathBuf>,
    /// What a right answer is.
    #[serde(default)]
    pub(super) expect: ExpectSpec,
}

/// `expect = { … }`: what is left out is not checked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectSpec {
    /// 200 by default.
    pub(super) status: Option<u16>,
    /// Headers that have to be there with exactly these values.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// The body, as text in which `{key}` is the key that was asked for.
    pub(super) body: Option<String>,
    /// The body, from a file beside the suite.
    pub(super) body_file: Option<PathBuf>,
    /// The SHA-256 of the body, in hexadecimal digits.
    pub(super) sha256: Option<String>,
    /// How long the body is.
    pub(super) bytes: Option<ByteCount>,
}

/// Methods that may be repeated (RFC 9110, section 9.2.2).
const IDEMPOTENT: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// Which key below the request's is wrong, and in what way.
pub(super) type Problem = (&'static str, String);

impl RequestSpec {
    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("GET")
    }

    pub(super) fn kind(&self) -> Kind {
        match self.method() {
            "GET" | "HEAD" | "OPTIONS" => Kind::Read,
            _ => Kind::Write,
        }
    }

    pub(super) fn resolve(&self, keys: Option<&Keys>, folder: &Path) -> Result<Request, Problem> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if self.name.is_empty() || !self.name.bytes().all(is_name) {
            return Err(("name", "letters, digits, `-` and `_`".to_owned()));
        }
        if self.method() == "CONNECT" {
            return Err(("method", "a tunnel is no request with an answer".to_owned()));
        }
        let body = said_body(folder, self.body.as_deref(), self.body_file.as_deref())?;
        let key_bytes = keys.map_or(0, Keys::bytes);
        let needs_length = body.is_some() || matches!(self.method(), "POST" | "PUT" | "PATCH");
        let body_bytes = body.as_ref().map_or(0, |body| body.len(key_bytes));
        let body_bytes = needs_length.then_some(body_bytes);
        let headers = self.headers();
        self.check_head(&headers, body_bytes)?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let parts = Parts {
            method: self.method().to_owned(),
            path: self.path.clone(),
            headers: headers.into_iter().map(owned).collect(),
            has_own_host: self.has_own_host(),
            body,
            body_bytes,
        };
        let bytes = parts.template();
        let is_head = self.method() == "HEAD";
        let expected = self.expect.resolve(is_head, folder)?;
        let answers_key = matches!(&expected.body, ExpectedBody::Exactly(body) if body.has_key());
        let has_key = bytes.has_key();
        if (has_key || answers_key) && keys.is_none() {
            let message = format!("`{KEY}` needs keys to draw from: keys = {{ count = … }}");
            return Err((if has_key { "path" } else { "expect.body" }, message));
        }
        if answers_key && !has_key {
            let message = format!("the answer can't hold a key: the request has no `{KEY}`");
            return Err(("expect.body", message));
        }
        let is_idempotent = IDEMPOTENT.contains(&self.method());
        let name = self.name.clone();
        Ok(Request { name, is_head, is_idempotent, has_key, bytes, parts, expected })
    }

    fn has_own_host(&self) -> bool {
        self.headers.keys().any(|name| name.eq_ignore_ascii_case("host"))
    }

    /// The headers in order, with a `host`.
    fn headers(&self) -> Vec<(&str, &str)> {
        let host = (!self.has_own_host()).then_some(("host", "localhost"));
        let said = self.headers.iter().map(|(name, value)| (&name[..], &value[..]));
        host.into_iter().chain(said).collect()
    }

    /// That the head is one of HTTP/1.1.
    fn check_head(&self, headers: &[(&str, &str)], body_bytes: Option<u64>) -> Result<(), Problem> {
        // Any key stands for all of them: they are letters and digits.
        let example = self.path.replace(KEY, "k");
        let method = self.method();
        let part = |headers| RequestHead { method, target: &example, headers, body_bytes };
        part(&[]).check().map_err(|fault| {
            let is_method = !is_token(method);
            (if is_method { "method" } else { "path" }, fault.to_string())
        })?;
        part(headers).check().map_err(|fault| ("headers", fault.to_string()))
    }
}

impl ExpectSpec {
    fn resolve(&self, is_head: bool, folder: &Path) -> Result<Expected, Problem> {
        let status = self.status.unwrap_or(200);
        if !(200..=599).contains(&status) {
            return Err(("expect.status", format!("{status} is no status of a final answer")));
        }
        for (name, value) in &self.headers {
            if !is_token(name) || !is_field_value(value.as_bytes()) || value.trim() != value {
                return Err(("expect.headers", format!("{name:?} and its value are no header")));
            }
        }
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let body = self.body(folder)?;
        if is_head && !matches!(body, ExpectedBody::Any) {
            let message = "an answer to HEAD has no body; expect its content-length as a header";
            return Err(("expect", message.to_owned()));
        }
        Ok(Expected { status, headers: headers.collect(), body })
    }

    fn body(&self, folder: &Path) -> Result<ExpectedBody, Problem> {
        let exactly = said_body(folder, self.body.as_deref(), self.body_file.as_deref());
        let exactly = exactly.map_err(|(part, message)| match part {
            "body_file" => ("expect.body_file", message),
            _ => ("expect.body", message),
        })?;
        let bytes = self.bytes.map(|count| count.bytes);
        if bytes.is_some_and(|bytes| bytes > MAX_BODY_BYTES) {
            return Err(("expect.bytes", format!("at most {MAX_BODY_BYTES} bytes are read")));
        }
        match (exactly, &self.sha256, bytes) {
            (None, None, None) => Ok(ExpectedBody::Any),
            (None, None, Some(bytes)) => Ok(ExpectedBody::Long(bytes)),
            (Some(body), None, None) => Ok(ExpectedBody::Exactly(body)),
            (None, Some(digits), bytes) => {
                let digest = read_digest(digits).ok_or_else(|| {
                    ("expect.sha256", "64 hexadecimal digits, as sha256sum prints them".to_owned())
                })?;
                Ok(ExpectedBody::Digest(digest, bytes))
            }
            (Some(_), ..) => {
                let message = "a body is known by itself; leave `sha256` and `bytes` out";
                Err(("expect.body", message.to_owned()))
            }
        }
    }
}

/// A body that is given as text or in a file.
fn said_body(
    folder: &Path,
    text: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Template>, Problem> {
    match (text, file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(("body", "say either `body` or `body_file`".to_owned())),
        (Some(text), None) if text.len() as u64 > MAX_SAID_BYTES => {
            Err(("body", format!("larger than {MAX_SAID_BYTES} bytes")))
        }
        (Some(text), None) => Ok(Some(Template::text(text))),
        (None, Some(file)) => {
            let bytes = base::read_bytes(&folder.join(file), MAX_SAID_BYTES);
            let bytes = bytes.map_err(|error| ("body_file", error.to_string()))?;
            Ok(Some(Template::plain(bytes)))
        }
    }
}

fn read_digest(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(digest)
}
