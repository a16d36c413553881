//! Bytes come in any pieces: the answers are the same as if they had come at once.

mod common;

use cache::server::Options;
use common::{Session, service};
use proptest::prelude::*;

const SCRIPT: &str = "set a 1 0 3\r\nabc\r\nget a\r\nget a b a\r\n  gets  a\nmg a v f t k s\r\n\
    delete a noreply\r\nget a\r\nbogus\r\n\r\nset b 0 0 2\r\nlong\r\nset c 0 0 9999999\r\nmg\r\n";

/// A command, sensible or nearly so.
fn command() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![Just("a"), Just("b"), Just("a-much-longer-key"), Just("")];
    let value = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => (key.clone(), key.clone()).prop_map(|(a, b)| format!("get {a} {b}\r\n").into_bytes()),
        1 => key.clone().prop_map(|key| format!("gets {key}\n").into_bytes()),
        2 => key.clone().prop_map(|key| format!("mg {key} v t f c k s\r\n").into_bytes()),
        2 => key.clone().prop_map(|key| format!("delete {key}\r\n").into_bytes()),
        4 => (key.clone(), value, 0..3_usize).prop_map(|(key, value, off)| {
            let length = value.len() + off / 2;
            [format!("set {key} 5 0 {length}\r\n").as_bytes(), &value, b"\r\n"].concat()
        }),
        1 => (key, 17_000..70_000_usize).prop_map(|(key, length)| {
            let value = vec![b'v'; length];
            [format!("set {key} 5 0 {length}\r\n").as_bytes(), &value, b"\r\n"].concat()
        }),
        1 => prop::collection::vec(any::<u8>(), 0..30),
    ]
}

fn answers_in_parts(bytes: &[u8], parts: &[usize]) -> (Vec<u8>, bool) {
    let options = Options { memory_bytes: 8 << 20, ..Options::default() };
    let mut session = Session::of(&service(options));
    let mut rest = bytes;
    for part in parts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*part).min(rest.len()));
        session.hear(now);
        rest = later;
    }
    (session.out.take(), session.ended.is_some())
}

#[test]
fn a_script_split_at_every_byte_is_answered_the_same() {
    let script = SCRIPT.as_bytes();
    let whole = answers_in_parts(script, &[script.len()]);
    for at in 1..script.len() {
        assert_eq!(answers_in_parts(script, &[at, script.len()]), whole, "split at {at}");
    }
    assert_eq!(answers_in_parts(script, &[1]), whole, "byte by byte");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_commands_in_any_pieces_are_answered_the_same(
        commands in prop::collection::vec(command(), 1..12),
        parts in prop::collection::vec(1..3000_usize, 1..10),
        small in 1..4_usize,
    ) {
        let bytes = commands.concat();
        let whole = answers_in_parts(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(&answers_in_parts(&bytes, &parts), &whole);
        if bytes.len() < 2000 {
            prop_assert_eq!(&answers_in_parts(&bytes, &[small]), &whole);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let mut session = Session::new();
        session.hear(&bytes);
        if session.ended.is_none() {
            prop_assert!(session.waiting() <= 2048 + (16 << 10) + 2);
        }
    }
}
