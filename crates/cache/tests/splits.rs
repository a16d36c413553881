//! Bytes come in any pieces: the answers are the same as if they had come at once.

use crate::common::{Session, service};
use cache::server::Options;
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
        3 => meta(),
    ]
}

/// A meta command, sensible or nearly so.
fn meta() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![Just("a"), Just("b"), Just("YWJj b"), Just("")];
    let flags = prop::collection::vec("[a-zA-Z!][0-9]{0,3}", 0..6);
    let value = prop::collection::vec(any::<u8>(), 0..40);
    (prop_oneof![Just("mg"), Just("ms"), Just("md"), Just("ma"), Just("me")], key, flags, value)
        .prop_map(|(name, key, flags, value)| {
            let flags = flags.join(" ");
            match name {
                "ms" => {
                    let line = format!("ms {key} {} {flags}\r\n", value.len());
                    [line.as_bytes(), &value, b"\r\n"].concat()
                }
                _ => format!("{name} {key} {flags}\r\n").into_bytes(),
            }
        })
}

/// A packet, with lengths that make sense or nearly so.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let lengths = (0..21_u8, 0..6_u16, 0..40_u32);
    (0..0x26_u8, lengths, any::<u64>(), 0..3_u8).prop_map(|(opcode, lengths, seed, known)| {
        let (extras, key, value) = lengths;
        let (extras, key) = match (known, opcode) {
            (0, _) => (extras, key),
            (_, 1..=3 | 0x11..=0x13) => (8, key + 1),
            (_, 5 | 6 | 0x15 | 0x16) => (20, key + 1),
            (_, 0x1c..=0x1e | 0x23 | 0x24) => (4, key + 1),
            _ => (0, key),
        };
        let body = u32::from(extras) + u32::from(key) + value;
        let mut bytes = vec![0x80, opcode];
        bytes.extend(key.to_be_bytes());
        bytes.extend([extras, 0, 0, 0]);
        bytes.extend(body.to_be_bytes());
        bytes.extend([7; 4]);
        bytes.extend((if known == 1 { 0 } else { seed % 9 }).to_be_bytes());
        bytes.extend((0..body).map(|at| b'0' + (seed.wrapping_add(u64::from(at)) % 4) as u8));
        bytes
    })
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
    fn any_packets_in_any_pieces_are_answered_the_same(
        packets in prop::collection::vec(packet(), 1..20),
        parts in prop::collection::vec(1..300_usize, 1..10),
    ) {
        // Statistics tell of the process's own time.
        let packets: Vec<_> = packets.into_iter().filter(|packet| packet[1] != 0x10).collect();
        let bytes = packets.concat();
        let whole = answers_in_parts(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(&answers_in_parts(&bytes, &parts), &whole);
        prop_assert_eq!(&answers_in_parts(&bytes, &[1]), &whole);
    }

    #[test]
    fn no_datagram_does_harm(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        framed in prop::collection::vec(command(), 1..5),
    ) {
        let mut socket = cache::server::CacheDatagrams::new(service(Options::default()), 0);
        let (mut batch, mut replies) = (wire::Batch::default(), wire::Replies::default());
        let from: wire::Address = "127.0.0.1:9".parse().expect("an address");
        datagrams.iter().for_each(|one| batch.push(from.clone(), one));
        for (number, command) in framed.iter().enumerate() {
            let frame = [9, number as u8, 0, 0, 0, 1, 0, 0];
            batch.push(from.clone(), &[&frame, &command[..]].concat());
        }
        wire::Datagrams::datagrams(&mut socket, 0, &batch, &mut replies);
        for (_, reply) in replies.iter() {
            prop_assert!((9..=1400).contains(&reply.len()));
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let mut session = Session::new();
        session.hear(&bytes);
        if session.ended.is_none() {
            prop_assert!(session.waiting() <= 4 << 10);
        }
    }
}
