//! Data blocks on their way in, and the memory that they reserve.

use crate::common::{Session, service};
use cache::server::Options;

/// Bytes of each value: four of them fill the memory.
const VALUE_BYTES: usize = 1_000_000;

fn options() -> Options {
    Options { memory_bytes: 16 << 20, ..Options::default() }
}

/// Announces a value and sends the beginning of it.
fn begin(session: &mut Session, key: &str) {
    assert_eq!(session.say(format!("set {key} 0 0 {VALUE_BYTES}\r\n{}", "x".repeat(5000))), "");
}

const REFUSED: &str = "SERVER_ERROR out of memory storing object\r\n";

#[test]
fn half_sent_values_give_way_once_others_are_refused_and_not_before() {
    let service = service(options());
    let mut slow: Vec<_> = (0..4).map(|_| Session::of(&service)).collect();
    for (number, session) in slow.iter_mut().enumerate() {
        begin(session, &format!("slow-{number}"));
        for _ in 0..100 {
            assert!(session.pass_time() && session.ended.is_none(), "no other needs its memory");
        }
    }
    let mut other = Session::of(&service);
    let (announced, data) =
        (format!("set large 0 0 {VALUE_BYTES}\r\n"), "y".repeat(VALUE_BYTES) + "\r\n");
    assert_eq!((other.say(&announced), other.say(&data)), (REFUSED.to_owned(), String::new()));
    // One goes on, in its own time.
    assert_eq!(slow[0].say("x".repeat(64 << 10)), "");
    for session in &mut slow {
        session.pass_time();
    }
    assert!(slow[0].ended.is_none(), "it has sent enough meanwhile");
    for session in &mut slow[1..] {
        assert!(matches!(session.ended, Some(Err(_))));
        assert_eq!(String::from_utf8_lossy(&session.out.take()), REFUSED);
    }
    assert_eq!((other.say(&announced), other.say(&data)), (String::new(), "STORED\r\n".to_owned()));
    let rest = "x".repeat(VALUE_BYTES - 5000 - (64 << 10)) + "\r\n";
    assert_eq!(slow[0].say(rest), "STORED\r\n");
    assert!(!slow[0].pass_time(), "nothing is on its way any more");
}

#[test]
fn a_value_of_the_binary_protocol_gives_way_in_the_same_way() {
    let service = service(options());
    let mut slow: Vec<_> = (0..4).map(|_| Session::of(&service)).collect();
    let body = (8 + 4 + VALUE_BYTES) as u32;
    let mut packet = vec![0x80, 1, 0, 4, 8, 0, 0, 0];
    packet.extend(body.to_be_bytes());
    packet.extend([0; 12 + 8]);
    packet.extend(*b"slow");
    for session in &mut slow {
        assert_eq!(session.say(&packet), "");
    }
    let mut other = Session::of(&service);
    let announced = format!("set large 0 0 {VALUE_BYTES}\r\n");
    assert_eq!(other.say(announced), REFUSED);
    for session in &mut slow {
        session.pass_time();
        let answer = session.out.take();
        // The status of "out of memory".
        assert_eq!((answer[0], &answer[6..8]), (0x81, &[0, 0x82][..]));
        assert!(matches!(session.ended, Some(Err(_))));
    }
}
