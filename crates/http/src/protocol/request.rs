//! The head of a request, as bytes.

use wire::ProtocolError;

/// A request line and headers.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The request target, such as `/index.html?a=1`.
    pub target: &'a str,
    /// Headers in order, without `content-length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// The length of the body that follows; `None` sends no `content-length`.
    pub body_bytes: Option<u64>,
}

impl RequestHead<'_> {
    /// Checks that the parts are valid where they are written: a line end in a header, for
    /// example, would begin another one.
    ///
    /// # Errors
    /// Names the first invalid part and what is wrong with it.
    pub fn check(&self) -> Result<(), ProtocolError> {
        let wrong = |what: String| Err(ProtocolError::new(what));
        if !is_token(self.method) {
            return wrong(format!("{:?} is not a method", self.method));
        }
        let starts = self.target.starts_with('/') || self.target == "*";
        if !starts || !self.target.bytes().all(is_target_byte) {
            let advice = "begin with `/` and percent-encode what is not a character of a URI";
            return wrong(format!("{:?} is not a path: {advice}", self.target));
        }
        for (name, value) in self.headers {
            if !is_token(name) {
                return wrong(format!("{name:?} is not a header's name"));
            }
            if !is_field_value(value.as_bytes()) {
                return wrong(format!("the value of {name} contains a control character"));
            }
            let is_framing = ["content-length", "transfer-encoding"];
            if is_framing.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return wrong(format!("leave {name} out: it follows from the body"));
            }
        }
        Ok(())
    }

    /// Appends the request's bytes. Performs no check: see [`RequestHead::check`].
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

/// Whether this is a token of RFC 9110: a method or a header's name.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[inline]
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether these bytes are a valid header value: no control characters except tab.
#[inline]
pub fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || *byte == b'\t')
}

/// Whether the byte is valid in a request target (RFC 3986, path and query).
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
    fn a_part_that_would_change_the_request_is_refused() {
        let error = |head: RequestHead<'_>| head.check().expect_err("refused").to_string();
        assert!(error(RequestHead { method: "GE T", ..GET }).contains("method"));
        assert!(error(RequestHead { target: "a", ..GET }).contains("begin with `/`"));
        assert!(error(RequestHead { target: "/ä b", ..GET }).contains("percent-encode"));
        assert!(error(RequestHead { headers: &[("a:", "b")], ..GET }).contains("name"));
        let broken = [("a", "b\r\nc: d")];
        assert!(error(RequestHead { headers: &broken, ..GET }).contains("control"));
        let framing = [("Content-Length", "1")];
        assert!(error(RequestHead { headers: &framing, ..GET }).contains("follows from the body"));
    }
}
