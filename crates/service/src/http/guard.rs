//! What every request passes: whether it names this server, carries a token where one is needed,
//! and may want more than to read.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::settings::{Face, HttpSettings, is_loopback};
use crate::Tokens;

/// Headers of every answer. A page holds its styles and nothing else that acts.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// What the server spent on the answer.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What caches may keep, unless an answer of an interface says otherwise.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// What a request is checked against.
#[derive(Debug)]
pub(super) struct Guard {
    port: u16,
    is_public: bool,
    takes_names: bool,
    tokens: Option<Tokens>,
    face: Face,
    /// Whether a `POST` to a path only reads.
    reads: fn(&str) -> bool,
}

impl Guard {
    /// The guard of a server at `port`, where a `POST` to some paths only `reads`.
    pub(super) fn new(settings: HttpSettings, port: u16, reads: fn(&str) -> bool) -> Self {
        let HttpSettings { address, takes_names, tokens, face } = settings;
        let is_public = !is_loopback(address);
        Self { port, is_public, takes_names, tokens, face, reads }
    }

    /// Why a request is refused, if it is.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Response> {
        if !self.takes_names && !names_us(request, self.port, self.is_public) {
            let port = self.port;
            let fix = format!(
                "ask for it by its address, or as localhost, with port {port}: a tunnel needs that \
                 port at both ends"
            );
            return Some(self.say(StatusCode::MISDIRECTED_REQUEST, "not this server's name", &fix));
        }
        let is_read = [Method::GET, Method::HEAD].contains(request.method())
            || request.method() == Method::POST && (self.reads)(request.uri().path());
        let tokens = self.tokens.as_ref().filter(|_| self.face == Face::Pages || !is_read);
        if !tokens.is_none_or(|tokens| carries_one(request, tokens)) {
            let fix = "send Authorization: Bearer TOKEN";
            let error = match request.headers().contains_key(header::AUTHORIZATION) {
                true => "a token is needed, and this is none of them",
                false => "a token is needed",
            };
            let mut answer = self.say(StatusCode::UNAUTHORIZED, error, fix);
            let challenge = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return Some(answer);
        }
        if self.face == Face::Api {
            return (!is_read && is_of_another_origin(request)).then(|| {
                let error = "pages of another origin may only read here";
                self.say(StatusCode::FORBIDDEN, error, "send it from a program, or a page of ours")
            });
        }
        if !is_read {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let mut answer = self.say(status, "this is only for reading", "use GET or HEAD");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Some(answer);
        }
        None
    }

    /// Whether a request that only reads may name this host.
    pub(super) fn takes(&self, host: &[u8]) -> bool {
        let is_ours = |host| is_ours(host, self.port, self.is_public);
        self.takes_names || std::str::from_utf8(host).is_ok_and(is_ours)
    }

    /// Adds the headers that every answer has. An interface says how long the answer took, from its
    /// request's head to its own (Server-Timing, in ms).
    pub(super) fn add_headers<B>(&self, answer: &mut axum::http::Response<B>, took: Duration) {
        let headers = answer.headers_mut();
        if self.face == Face::Api {
            let took = format!("total;dur={:.3}", took.as_secs_f64() * 1e3);
            headers.extend(HeaderValue::try_from(took).ok().map(|took| (SERVER_TIMING, took)));
        }
        for (name, value) in HEADERS {
            // A page of a service that runs a script of its own says so.
            if self.face == Face::Pages || !headers.contains_key(&name) {
                headers.insert(name, value);
            }
        }
        if self.face == Face::Pages || !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, NO_STORE);
        }
    }

    /// What is wrong and what can be done, in words that need no escape in JSON. `detail`, too, is
    /// where clients of an interface look for both.
    fn say(&self, status: StatusCode, error: &str, fix: &str) -> Response {
        match self.face {
            Face::Pages => (status, format!("{error}: {fix}\n")).into_response(),
            Face::Api => {
                let both = format!("{error}: {fix}");
                let json = format!(r#"{{"error":"{error}","fix":"{fix}","detail":"{both}"}}"#);
                (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
            }
        }
    }
}

/// Whether a browser sends this for a page of another host or port (RFC 6454): it shows no answer
/// to that page, but sends the request.
fn is_of_another_origin<B>(request: &Request<B>) -> bool {
    let host = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
    let is_other = |origin: &HeaderValue| {
        let authority = origin.as_bytes().split(|byte| *byte == b'/').nth(2);
        authority.is_none() || authority != host
    };
    request.headers().get_all(header::ORIGIN).iter().any(is_other)
}

/// Whether the request has one of the tokens (RFC 6750, 2.1).
fn carries_one<B>(request: &Request<B>, tokens: &Tokens) -> bool {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Some((scheme, token)) = value.as_bytes().split_at_checked(7) else { return false };
    scheme.eq_ignore_ascii_case(b"bearer ") && tokens.has(token.trim_ascii())
}

/// Whether the one `Host` of a request is ours, and the authority of its target if it has one.
fn names_us<B>(request: &Request<B>, port: u16, is_public: bool) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let target = request.uri().authority();
    host.to_str().is_ok_and(|host| is_ours(host, port, is_public))
        && target.is_none_or(|target| is_ours(target.as_str(), port, is_public))
}

/// Whether `HOST:PORT` is an address of this machine, or `localhost`. Other machines need another
/// address, but no name: only names can be made to lead elsewhere.
fn is_ours(host: &str, port: u16, public: bool) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_address = |ip: IpAddr| public || ip.is_loopback();
    !host.contains('@')
        && authority.port_u16().map_or([80, 443].contains(&port), |named| named == port)
        && (name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_and_localhost_with_the_port_are_ours() {
        for ours in ["127.0.0.1:4380", "localhost:4380", "LOCALHOST:4380", "[::1]:4380"] {
            assert!(is_ours(ours, 4380, false), "{ours}");
        }
        let others = [
            "",
            "localhost",
            "localhost:",
            "127.0.0.1:80",
            "evil.example:4380",
            "localhost.evil.example:4380",
            "10.0.0.1:4380",
            "[::2]:4380",
            "a@127.0.0.1:4380",
            "127.0.0.1:4380, evil.example",
            "127.0.0.1:4380:4380",
        ];
        for other in others {
            assert!(!is_ours(other, 4380, false), "{other}");
        }
        assert!(is_ours("10.0.0.1:4380", 4380, true), "another machine, where it is allowed");
        assert!(!is_ours("evil.example:4380", 4380, true), "a name leads anywhere");
        assert!(is_ours("localhost", 80, false), "the port that needn't be said");
        assert!(is_ours("localhost", 443, false), "of encrypted connections, too");
    }
}
