//! How fast the loopback of this host carries large messages: the ceiling of whatever sends arrays
//! to a client on the same host.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use wire::clock::now;

/// How long a message is: an array of ten million 64-bit numbers, which no cache holds.
pub const MESSAGE_BYTES: usize = 80_000_000;

/// The first message pays for the memory.
const MESSAGES: usize = 6;

/// How many bytes a second one TCP connection carries from one thread to another, by the best of
/// some messages of [`MESSAGE_BYTES`], sent from and received into memory that is used again;
/// unseen where there is no loopback.
pub fn loopback_bytes_per_s() -> Option<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let mut sender = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    let (mut receiver, _) = listener.accept().ok()?;
    let sending = std::thread::spawn(move || {
        let message = vec![1_u8; MESSAGE_BYTES];
        let mut word = [0];
        // One at a time, when the other side says so: no message begins before its clock does.
        while sender.read_exact(&mut word).is_ok() && sender.write_all(&message).is_ok() {}
    });
    let mut place = vec![0_u8; MESSAGE_BYTES];
    let mut least_ns = u64::MAX;
    for _ in 0..MESSAGES {
        let start = now();
        receiver.write_all(&[1]).ok()?;
        receiver.read_exact(&mut place).ok()?;
        least_ns = least_ns.min(now() - start);
    }
    drop(receiver);
    let _ = sending.join();
    Some(MESSAGE_BYTES as f64 * 1e9 / least_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::loopback_bytes_per_s;

    #[test]
    fn a_loopback_carries_messages_that_are_whole() {
        let per_s = loopback_bytes_per_s().unwrap();
        assert!((1e6..1e13).contains(&per_s), "{per_s}");
    }
}
