//! The head of a request, as bytes.

use crate::ProtocolError;

/// A request's line and headers.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// What is asked for, such as `/index.html?a=1`.
    pub target: &'a str,
    /// Headers in order, without `content-length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// How long the body is that follows; `None` sends no `content-length`.
    pub body_bytes: Option<u64>,
}

impl RequestHead<'_> {
    /// Whether these can be written without being taken for something else: a line end in a
    /// header would begin another one.
    ///
    /// # Errors
    /// What is wrong with which of them.
    pub fn check(&self) -> Result<(), ProtocolError> {
        let wrong = |what: String| Err(ProtocolError::new(what));
        if !is_token(self.method) {
            return wrong(format!("{:?} is no method", self.method));
        }
        let starts = self.target.starts_with('/') || self.target == "*";
        if !starts || !self.target.bytes().all(is_target_byte) {
            let advice = "begin with `/` and percent-encode what is no character of a URI";
            return wrong(format!("{:?} is no path: {advice}", self.target));
        }
        for (name, value) in self.headers {
            if !is_token(name) {
                return wrong(format!("{name:?} is no name of a header"));
            }
            if !is_field_value(value.as_bytes()) {
                return wrong(format!("the value of {name} holds a control character"));
            }
            let is_framing = ["content-length", "transfer-encoding"];
            if is_framing.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return wrong(format!("{name} is not to be said: it follows from the body"));
            }
        }
        Ok(())
    }

    /// Appends the bytes; what [`RequestHead::check`] refuses is written as it is.
    pub fn put(&self, into: &mut Vec<u8>) {
        let line = [self.method, " ", self.target, " HTTP/1.1\r\n"];
        line.iter().for_each(|part| into.extend_from_slice(part.as_bytes()));
        for (name, value) in self.headers {
            let line = [name, ": ", value, "\r\n"];
            line.iter().for_each(|part| into.extend_from_slice(part.as_bytes()));
        }
        if let Some(length) = self.body_bytes {
            into.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        into.extend_from_slice(b"\r\n");
    }
}

/// Whether this is a token of RFC 9110: a method or the name of a header.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[inline]
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether these bytes may stand as a header's value: no control characters but the tab.
#[inline]
pub fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || *byte == b'\t')
}

/// Whether the byte may stand in a request's target (RFC 3986: what follows the host).
fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::RequestHead;

    const GET: RequestHead<'_> = RequestHead {
        method: "GET",
        target: "/a?b=%20c",
        headers: &[("host", "localhost"), ("accept", "text/html")],
        body_bytes: None,
    };

    fn written(head: &RequestHead<'_>) -> String {
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_request_is_written_line_by_line() {
        let text = "GET /a?b=%20c HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\n\r\n";
        assert_eq!(written(&GET), text);
        let post = RequestHead { method: "POST", body_bytes: Some(12), ..GET };
        assert!(written(&post).ends_with("content-length: 12\r\n\r\n"));
        assert_eq!(post.check(), Ok(()));
    }

    #[test]
    fn what_would_be_taken_for_something_else_is_refused() {
        let said = |head: RequestHead<'_>| head.check().expect_err("refused").to_string();
        assert!(said(RequestHead { method: "GE T", ..GET }).contains("method"));
        assert!(said(RequestHead { target: "a", ..GET }).contains("begin with `/`"));
        assert!(said(RequestHead { target: "/ä b", ..GET }).contains("percent-encode"));
        assert!(said(RequestHead { headers: &[("a:", "b")], ..GET }).contains("name"));
        let broken = [("a", "b\r\nc: d")];
        assert!(said(RequestHead { headers: &broken, ..GET }).contains("control"));
        let framing = [("Content-Length", "1")];
        assert!(said(RequestHead { headers: &framing, ..GET }).contains("follows from the body"));
    }
}
