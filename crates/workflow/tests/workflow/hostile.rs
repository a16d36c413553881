//! Bytes that are no request harm only their own connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::place::Place;
use crate::served::start;

/// What is answered to some bytes.
fn answer(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    stream.write_all(bytes).expect("sent");
    // The server may have closed it already.
    let _ = stream.shutdown(Shutdown::Write);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

/// What is answered to a document.
pub(crate) fn framed(port: u16, document: &[u8]) -> String {
    answer(port, &[format!("{:8x}", document.len()).as_bytes(), document].concat())
}

#[test]
fn no_bytes_harm_others() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let ping = br#"{"x":{"cmd_":{"polymorphic_id":2147483649,"polymorphic_name":"CtsCmd",
        "ptr_wrapper":{"data":{"value0":{"value0":{"cl_host_":"h"},"user_":"me"},"api_":8}}}}}"#;
    let ping = [format!("{:8x}", ping.len()).as_bytes(), ping].concat();
    let mut half = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    half.write_all(&ping[..40]).expect("sent");
    let deep = "[".repeat(1000);
    for (bytes, part) in [
        (b"ffffffff".to_vec(), "at most 1048576 are taken (--max-message)"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "8 hexadecimal digits"),
        (b"       0".to_vec(), "no bytes"),
        (b"       2{}".to_vec(), "not understood"),
        (format!("{:8x}{deep}", deep.len()).into_bytes(), "not understood"),
        (ping.clone(), "\"api_\": 0"),
    ] {
        let said = answer(place.port, &bytes);
        assert!(said.contains(part), "{said}");
    }
    half.write_all(&ping[40..]).expect("sent");
    let mut said = String::new();
    half.read_to_string(&mut said).expect("text");
    assert!(said.contains("\"api_\": 0"), "{said}");
    server.stop(std::time::Duration::from_secs(1));
}
