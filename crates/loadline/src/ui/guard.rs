//! What every request passes: whether it means this server, and that it only wants to read.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::site::Site;

/// The headers of every answer. A page contains its styles, and no scripts.
const HEADERS: &[(HeaderName, &str)] = &[
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Refuses what doesn't mean this server or wants more than to read; heads every answer.
pub(super) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut answer = if !means_us(&request, site.address.port(), site.public) {
        let words = "Ask for this server by its address and port, or as localhost.\n";
        (StatusCode::MISDIRECTED_REQUEST, words).into_response()
    } else if ![Method::GET, Method::HEAD].contains(request.method()) {
        let words = "The ledger is only read here: GET and HEAD.\n";
        (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], words).into_response()
    } else {
        next.run(request).await
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Whether the one `Host` of a request is ours, and the authority of its target if it has one.
fn means_us(request: &Request, port: u16, public: bool) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let target = request.uri().authority();
    host.to_str().is_ok_and(|host| is_ours(host, port, public))
        && target.is_none_or(|target| is_ours(target.as_str(), port, public))
}

/// Whether `HOST:PORT` is an address of this machine, or `localhost`. Other machines need another
/// address, but no name: only names can be made to lead elsewhere.
fn is_ours(host: &str, port: u16, public: bool) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_address = |ip: IpAddr| public || ip.is_loopback();
    !host.contains('@')
        && authority.port_u16().unwrap_or(80) == port
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
    }
}
