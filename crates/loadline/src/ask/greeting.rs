//! The first answer of a web server, before it is loaded: what is wrong with every answer is better
//! known before the first of them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::side::Web;

/// How long the first answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The head of an answer is looked through up to here.
const MOST_BYTES: u64 = 64 << 10;

/// Asks for the page once.
///
/// # Errors
/// When another status comes than the right one, with what could be meant. What else may be wrong
/// with an answer, or that none comes, is for the run to say.
pub(super) fn check(web: &Web, status: u16) -> Result<(), String> {
    // A key is drawn for each request of the run.
    if web.path.contains("{key}") {
        return Ok(());
    }
    let Some(head) = head(web) else { return Ok(()) };
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.splitn(3, ' ').skip(1);
    let Some(Ok(found)) = words.next().map(str::parse::<u16>) else { return Ok(()) };
    if found == status {
        return Ok(());
    }
    let reason = words.next().unwrap_or_default();
    let location = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let advice = match location {
        Some(location) if (300..400).contains(&found) => format!(
            "redirects are not followed: try {location} itself, or say --status {found} to \
             measure the redirect"
        ),
        _ => format!("try another path, or say --status {found} if that is the right answer"),
    };
    let url = format!("http://{}{}", web.authority, web.path);
    let said = report::one_line(&format!("{url} answers {found} {reason}, not {status}"));
    Err(format!("{said}\n  {}", report::one_line(&advice)))
}

/// The first bytes of the answer, up to the end of its head.
fn head(web: &Web) -> Option<String> {
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        web.path, web.authority
    );
    let mut stream = open(&web.address)?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    let mut limited = stream.take(MOST_BYTES);
    let mut piece = [0; 4096];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        match limited.read(&mut piece) {
            Ok(read @ 1..) => bytes.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

trait Stream: std::io::Read + std::io::Write {}
impl<T: std::io::Read + std::io::Write> Stream for T {}

fn open(address: &str) -> Option<Box<dyn Stream>> {
    if let Some(path) = address.strip_prefix("unix:") {
        let stream = UnixStream::connect(path).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        return Some(Box::new(stream));
    }
    let stream = TcpStream::connect_timeout(&address.parse().ok()?, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(Box::new(stream))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The error for a page whose server answers with this status.
    fn said(answer: &'static str, status: u16) -> Result<(), String> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        let serve = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let web = Web { authority: address.clone(), address, path: "/x".to_owned() };
        let said = check(&web, status);
        serve.join().unwrap();
        said
    }

    #[test]
    fn another_status_than_the_right_one_is_answered_with_what_could_be_meant() {
        assert_eq!(said("HTTP/1.1 200 OK\r\n\r\n", 200), Ok(()));
        assert_eq!(said("HTTP/1.1 404 Not Found\r\n\r\n", 404), Ok(()));
        assert_eq!(said("nothing of HTTP", 200), Ok(()), "the run says what is wrong with it");
        let missing = said("HTTP/1.1 404 Not Found\r\n\r\n", 200).unwrap_err();
        assert!(missing.contains("/x answers 404 Not Found, not 200"), "{missing}");
        assert!(missing.contains("--status 404"), "{missing}");
        let moved = said("HTTP/1.1 301 Moved\r\nLocation: /y/\r\n\r\n", 200).unwrap_err();
        assert!(moved.contains("redirects are not followed: try /y/ itself"), "{moved}");
    }
}
