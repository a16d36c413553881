//! Lines of other protocols. A web browser, or a server that fetches addresses for others, can be
//! made to send a request whose body holds cache commands: the connection ends at the first line
//! that shows it, before the body is read.
//!
//! memcached closes at an unknown command whose last token begins with `HTTP/`. Beyond that, these
//! end a connection: a request line whose method is the name of a command (`get /x HTTP/1.1`), the
//! header `Host:`, which comes before every body, and a TLS handshake, whose session identifier
//! may hold lines that the other side has chosen.

use super::tokens::Tokens;

/// How the last token of an HTTP request line begins.
const VERSION: &[u8] = b"HTTP/";

/// The header that each HTTP/1.1 request has.
const HOST: &[u8] = b"host:";

/// How a TLS handshake begins: a record of the handshake, of any version of TLS.
const TLS_HANDSHAKE: &[u8] = &[0x16, 3];

/// Whether a line whose first token is no command belongs to another protocol.
#[cold]
pub(super) fn is_foreign(line: &[u8]) -> bool {
    let mut tokens = Tokens::new(line);
    let name = tokens.next().unwrap_or_default();
    name.get(..HOST.len()).is_some_and(|start| start.eq_ignore_ascii_case(HOST))
        || line.starts_with(TLS_HANDSHAKE)
        || tokens.last().unwrap_or(name).starts_with(VERSION)
}

/// Whether the tokens after a command's name make its line an HTTP request line. Asked for each
/// line, so the common answer takes one comparison.
#[inline]
pub(super) fn is_request(tokens: Tokens<'_>) -> bool {
    let line = tokens.rest().trim_ascii_end();
    // `HTTP/2` or `HTTP/1.1`.
    let ends_with_version = [1, 3].into_iter().any(|digits| {
        let at = line.len().checked_sub(VERSION.len() + digits);
        at.is_some_and(|at| line[at..].starts_with(VERSION))
    });
    ends_with_version && is_request_line(tokens)
}

#[cold]
fn is_request_line(mut tokens: Tokens<'_>) -> bool {
    let mut form = RequestForm::default();
    tokens.all(|token| {
        form = form.after(token);
        form != RequestForm::Other
    });
    form == RequestForm::Whole
}

/// How far the tokens after a command's name look like those of an HTTP request line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestForm {
    /// There are no tokens yet.
    #[default]
    Empty,
    /// One token: the target of a request.
    Target,
    /// Two tokens: a target and a version.
    Whole,
    /// Something else.
    Other,
}

impl RequestForm {
    /// The form with one more token.
    #[inline]
    #[must_use]
    pub fn after(self, token: &[u8]) -> Self {
        match self {
            Self::Empty if is_target(token) => Self::Target,
            Self::Target if token.starts_with(VERSION) => Self::Whole,
            _ => Self::Other,
        }
    }
}

/// Whether a token may be what an HTTP request is for: a path, `*`, or an absolute address.
fn is_target(token: &[u8]) -> bool {
    token.starts_with(b"/") || token == b"*" || token.windows(3).any(|part| part == b"://")
}

#[cfg(test)]
mod tests {
    use super::{is_foreign, is_request};
    use crate::protocol::text::Tokens;

    #[test]
    fn lines_of_http_and_tls_are_foreign() {
        for line in [
            "POST / HTTP/1.1",
            "  PUT  /x  HTTP/1.0 ",
            "PRI * HTTP/2.0",
            "HTTP/1.1 200 HTTP/",
            "HTTP/1.1",
            "Host: localhost",
            "HOST:localhost:11211",
            "\u{16}\u{3}\u{1}anything",
        ] {
            assert!(is_foreign(line.as_bytes()), "{line:?}");
        }
        for line in ["", " ", "bogus", "GET a", "HTTP /x", "Hosts: x", "Host", "POST / http/1.1"] {
            assert!(!is_foreign(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn a_commands_words_are_a_request_only_as_a_target_and_a_version() {
        let is_request = |tokens: &str| is_request(Tokens::new(tokens.as_bytes()));
        for tokens in ["/x HTTP/1.1", " /  HTTP/1.0 ", "http://cache/ HTTP/1.1", "* HTTP/2"] {
            assert!(is_request(tokens), "{tokens:?}");
        }
        for tokens in ["", "HTTP/1.1", "a HTTP/1.1", "/x a HTTP/1.1", "/x HTTP/1.1 a", "/x", "x://"]
        {
            assert!(!is_request(tokens), "{tokens:?}");
        }
    }
}
