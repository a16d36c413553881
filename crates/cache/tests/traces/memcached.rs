//! The real memcached, driven through a trace.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::{Hits, Ratios, Request, key_of};

/// The arguments of a memcached with as much memory, as it comes but for one thread.
pub(crate) fn arguments(mebibytes: &str) -> [&str; 12] {
    let user = "nobody";
    ["-u", user, "-l", "127.0.0.1", "-p", "{port}", "-U", "0", "-t", "1", "-m", mebibytes]
}

/// Asks for each key, and stores it when it isn't there. A hit is answered with the item's size
/// instead of its value, which counts as a read all the same.
pub(crate) fn drive(address: SocketAddr, requests: &[Request]) -> Ratios {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_nodelay(true).expect("no delay");
    let mut hits = Hits::default();
    let mut message = Vec::new();
    for request in requests {
        let key = key_of(request);
        socket.write_all(format!("mg {key} s\r\n").as_bytes()).expect("sent");
        let is_hit = line(&mut socket).starts_with("HD");
        hits.add(request, is_hit);
        if !is_hit {
            message.clear();
            let head = format!("set {key} 0 0 {}\r\n", request.value_bytes);
            message.extend_from_slice(head.as_bytes());
            message.resize(message.len() + request.value_bytes, b'x');
            message.extend_from_slice(b"\r\n");
            socket.write_all(&message).expect("sent");
            // It refuses an item now and then for which it finds no memory in the size's class.
            line(&mut socket);
        }
    }
    hits.ratios()
}

/// One line of an answer; there is never more than one on its way.
fn line(socket: &mut TcpStream) -> String {
    let (mut all, mut chunk) = (Vec::new(), [0; 256]);
    while !all.ends_with(b"\n") {
        let count = socket.read(&mut chunk).expect("an answer");
        assert!(count > 0, "closed");
        all.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8(all).expect("text")
}
