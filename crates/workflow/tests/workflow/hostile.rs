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

/// A request of the type and with the members.
fn request(kind: &str, members: &str) -> String {
    format!(
        "{{\"x\":{{\"cmd_\":{{\"polymorphic_id\":2147483649,\"polymorphic_name\":\"{kind}\",\
         \"ptr_wrapper\":{{\"data\":{{\"value0\":{{\"value0\":{{\"cl_host_\":\"h\"}},\
         \"user_\":\"me\"}},{members}}}}}}}}}}}"
    )
}

#[test]
fn who_announces_much_or_reads_nothing_is_in_no_ones_way() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let connect = || TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    // 40 MiB are announced, of 8 that all requests may have.
    let halves: Vec<_> = (0..40)
        .map(|_| {
            let mut half = connect();
            half.write_all(b"  100000{").expect("sent");
            half
        })
        .collect();
    let ping = request("CtsCmd", "\"api_\":8");
    assert!(framed(place.port, ping.as_bytes()).contains("\"api_\": 0"));
    let tasks: String =
        (0..900).map(|task| format!("task t{task}\\n edit V '{}'\\n", "v".repeat(900))).collect();
    let load = format!(
        "\"force_\":true,\"defs_\":\"suite s\\n{tasks}endsuite\\n\",\"defs_filename_\":\"f\""
    );
    drop(halves);
    let loaded = framed(place.port, request("LoadDefsCmd", &load).as_bytes());
    assert!(loaded.contains("\"api_\": 0"), "{loaded}");
    // Of some 900 kB each, nine answers are more than 8 MiB.
    let get = request("CtsNodeCmd", "\"api_\":3,\"absNodePath_\":\"\"");
    let get = format!("{:8x}{get}", get.len());
    let mut all: Vec<_> = (0..60)
        .map(|_| {
            let mut slow = connect();
            slow.write_all(get.as_bytes()).expect("sent");
            slow
        })
        .collect();
    assert!(framed(place.port, ping.as_bytes()).contains("\"api_\": 0"));
    for slow in &mut all {
        let mut text = String::new();
        slow.read_to_string(&mut text).expect("text");
        assert!(text.contains("--send-memory") || text.ends_with('}'), "{}", text.len());
    }
    server.stop(std::time::Duration::from_secs(1));
}
