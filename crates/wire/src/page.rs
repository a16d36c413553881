//! A page that is made anew whenever it is asked for: how a service shows its counters to
//! Prometheus. One thread of its own, one answer a connection. Control plane.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;

use crate::{
    Address, Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output, ProtocolError,
    Server, WhenFull,
};

/// A request's line and headers may be at most this long.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// So many may ask at once; others wait.
const MAX_CONNECTIONS: usize = 16;

/// Who asks nothing for so long is sent away.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a page says.
type Make = Arc<dyn Fn() -> String + Send + Sync>;

/// A running server of one page. Dropping it stops it.
#[derive(Debug)]
pub struct Page(Server);

impl Page {
    /// Serves what `make` makes, as `content_type`, at `path` of `address`.
    ///
    /// # Errors
    /// When the address can't be had; the error names it.
    pub fn serve(
        address: &Address,
        path: &'static str,
        content_type: &'static str,
        make: impl Fn() -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = Listener::bind(address, &ListenOptions::default())?;
        let config = Config {
            max_connections: MAX_CONNECTIONS,
            when_full: WhenFull::Wait,
            input_limit_bytes: MAX_HEAD_BYTES,
            read_bytes: MAX_HEAD_BYTES,
            idle_timeout: Some(PATIENCE),
            thread_name: "page",
            ..Config::default()
        };
        let make: Make = Arc::new(make);
        let connection = move |_| PageConnection { path, content_type, make: Arc::clone(&make) };
        Server::start(config, vec![listener], connection).map(Self)
    }

    /// Where it is, with the port that it was given.
    pub fn address(&self) -> &Address {
        &self.0.addresses()[0]
    }
}

/// One request and its answer.
struct PageConnection {
    path: &'static str,
    content_type: &'static str,
    make: Make,
}

impl PageConnection {
    fn answer(&self, head: &[u8], out: &mut Output) {
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let (status, body) = match method {
            Some(b"GET" | b"HEAD") if path == self.path.as_bytes() => ("200 OK", (self.make)()),
            Some(b"GET" | b"HEAD") => ("404 Not Found", format!("there is only {}\n", self.path)),
            _ => ("405 Method Not Allowed", "only GET and HEAD are answered\n".to_owned()),
        };
        let content_type = if status == "200 OK" { self.content_type } else { "text/plain" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        out.put(head.as_bytes());
        if method != Some(b"HEAD") {
            out.put(body.as_bytes());
        }
    }
}

impl Connection for PageConnection {
    fn receive(
        &mut self,
        _now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let Some(end) = memmem::find(input.bytes(), b"\r\n\r\n") else {
            return Ok(Flow::Continue);
        };
        self.answer(&input.bytes()[..end], out);
        input.consume(input.len());
        Ok(Flow::Close)
    }

    fn too_large(&mut self, out: &mut Output) {
        out.put(b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n");
    }
}

impl fmt::Debug for PageConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageConnection")
    }
}

#[cfg(test)]
mod tests {
    use super::Page;
    use crate::Address;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn ask(page: &Page, request: &str) -> String {
        let Address::Internet(address) = page.address() else { unreachable!("TCP") };
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }

    #[test]
    fn a_page_is_made_for_each_request_and_nothing_else_is_there() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let count = std::sync::atomic::AtomicU64::new(0);
        let page = Page::serve(&address, "/metrics", "text/plain; version=0.0.4", move || {
            format!("made {}\n", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        });
        let page = page.expect("a page");
        let get = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
        let first = ask(&page, get);
        assert!(
            first.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n")
        );
        assert!(first.ends_with("\r\nContent-Length: 7\r\nConnection: close\r\n\r\nmade 0\n"));
        assert!(ask(&page, get).ends_with("\r\n\r\nmade 1\n"));
        let head = ask(&page, "HEAD /metrics?name[]=x HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(&page, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(&page, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9000));
        assert!(ask(&page, &long).starts_with("HTTP/1.1 431 "));
    }
}
