//! The requests of a suite: what was written, and what it means. Control plane.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use wire::http::{RequestHead, is_field_value, is_token};

use super::request::{Expected, ExpectedBody, KEY, Request, Template};
use super::{MOST_BODY_BYTES, MOST_REQUESTS, MOST_SAID_BYTES, named};
use crate::units::ByteCount;
use crate::{
    Keys, Kind, Misses, Sampler, Service, SpecError, Values, Workload, WorkloadSpec, WrittenBy,
};

/// `[[workload.request]]` as written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// What the mix calls it.
    pub name: String,
    /// What is asked for, with its query; `{key}` is a key of `[workload.keys]`.
    pub path: String,
    /// `GET` unless said otherwise.
    pub method: Option<String>,
    /// Headers beside `host`, which is `localhost` unless it is among them.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, as text in which `{key}` is a key.
    pub body: Option<String>,
    /// The body, from a file beside the suite.
    pub body_file: Option<PathBuf>,
    /// What a right answer is.
    #[serde(default)]
    pub expect: ExpectSpec,
}

/// `expect = { … }`: what is left out is not looked at.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ExpectSpec {
    /// 200 unless said otherwise.
    pub status: Option<u16>,
    /// Headers that have to be there with exactly these values.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, as text in which `{key}` is the key that was asked for.
    pub body: Option<String>,
    /// The body, from a file beside the suite.
    pub body_file: Option<PathBuf>,
    /// The SHA-256 of the body, in hexadecimal digits.
    pub sha256: Option<String>,
    /// How long the body is.
    pub bytes: Option<ByteCount>,
}

/// Which key below the request's is wrong, and in what way.
/// Methods that may be repeated (RFC 9110, section 9.2.2).
const IDEMPOTENT: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

type Problem = (&'static str, String);

/// What a workload of described requests means; `folder` is where the suite's files are.
pub(crate) fn resolve(
    spec: &WorkloadSpec,
    service: &'static Service,
    folder: &Path,
) -> Result<Workload, SpecError> {
    let error = |key: &'static str, message: String| Err(SpecError { key: key.into(), message });
    if spec.request.is_empty() {
        let message = "describe at least one [[workload.request]] with its name and path";
        return error("workload.request", message.to_owned());
    }
    if spec.request.len() > MOST_REQUESTS {
        return error("workload.request", format!("at most {MOST_REQUESTS} requests"));
    }
    if spec.value.is_some() || spec.keys_per_request.is_some() || spec.misses != Misses::Wrong {
        let message = "`value`, `keys_per_request` and `misses` mean nothing here: say in each \
                       request's `body` what is sent, and in its `expect` what is right";
        return error("workload", message.to_owned());
    }
    for (index, request) in spec.request.iter().enumerate() {
        if spec.request[..index].iter().any(|other| other.name == request.name) {
            return error("workload.request", format!("two are called \"{}\"", request.name));
        }
    }
    let keys = spec.keys.as_ref().map(|keys| keys.resolve(service)).transpose()?;
    let (keys, sampler) = match keys {
        Some((keys, sampler)) => (Some(keys), sampler),
        None => (None, Sampler::none()),
    };
    let operations: Vec<_> = spec.request.iter().map(|one| (&one.name[..], one.kind())).collect();
    let service = named::service(service, &operations);
    let mut requests = Vec::new();
    for (one, operation) in spec.request.iter().zip(service.operations) {
        let request = one.resolve(operation.name, keys.as_ref(), folder);
        requests.push(request.map_err(|(part, message)| SpecError {
            key: format!("workload.request.{}.{part}", one.name).into(),
            message,
        })?);
    }
    if keys.is_some() && !requests.iter().any(|request| request.has_key) {
        let message = format!("no request says where a key goes: write `{KEY}` into a path");
        return error("workload.keys", message);
    }
    let seed = spec.seed.unwrap_or(1);
    let steps = spec.resolve_steps(service)?;
    if spec.size.is_some() || spec.written_by != WrittenBy::Clients {
        let message = "requests say their bodies themselves".to_owned();
        return Err(SpecError { key: "workload.size".into(), message });
    }
    Ok(Workload {
        size: None,
        written_by: WrittenBy::Clients,
        service,
        mix: spec.resolve_mix(service, &steps)?,
        steps,
        keys: keys.unwrap_or_else(Keys::none),
        sampler,
        values: Values::new(seed, 0),
        keys_per_request: 1,
        misses_allowed: false,
        seed,
        requests: Arc::from(requests),
    })
}

impl RequestSpec {
    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("GET")
    }

    fn kind(&self) -> Kind {
        match self.method() {
            "GET" | "HEAD" | "OPTIONS" => Kind::Read,
            "DELETE" => Kind::Remove,
            _ => Kind::Write,
        }
    }

    fn resolve(
        &self,
        name: &'static str,
        keys: Option<&Keys>,
        folder: &Path,
    ) -> Result<Request, Problem> {
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
        let head = self.head(needs_length.then_some(body_bytes))?;
        let bytes = Template::text(&head);
        let bytes = match body {
            Some(body) => bytes.followed_by(body),
            None => bytes,
        };
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
        Ok(Request { name, is_head, is_idempotent, has_key, bytes, expected })
    }

    /// The head as it is sent, with `{key}` where keys go.
    fn head(&self, body_bytes: Option<u64>) -> Result<String, Problem> {
        let has_host = self.headers.keys().any(|name| name.eq_ignore_ascii_case("host"));
        let host = (!has_host).then_some(("host", "localhost"));
        let said = self.headers.iter().map(|(name, value)| (&name[..], &value[..]));
        let headers: Vec<_> = host.into_iter().chain(said).collect();
        // Any key stands for all of them: they are letters and digits.
        let example = self.path.replace(KEY, "k");
        let method = self.method();
        let part = |headers| RequestHead { method, target: &example, headers, body_bytes };
        part(&[]).check().map_err(|fault| {
            let is_method = !is_token(method);
            (if is_method { "method" } else { "path" }, fault.to_string())
        })?;
        part(&headers).check().map_err(|fault| ("headers", fault.to_string()))?;
        let mut head = Vec::new();
        RequestHead { target: &self.path, ..part(&headers) }.put(&mut head);
        String::from_utf8(head).map_err(|error| ("path", error.to_string()))
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
        if bytes.is_some_and(|bytes| bytes > MOST_BODY_BYTES) {
            return Err(("expect.bytes", format!("at most {MOST_BODY_BYTES} bytes are read")));
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
        (Some(text), None) if text.len() as u64 > MOST_SAID_BYTES => {
            Err(("body", format!("larger than {MOST_SAID_BYTES} bytes")))
        }
        (Some(text), None) => Ok(Some(Template::text(text))),
        (None, Some(file)) => {
            let bytes = crate::read_bytes(&folder.join(file), MOST_SAID_BYTES);
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
