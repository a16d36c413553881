//! The binary protocol, as a client writes and reads it.

use super::operations::{Answer, Got, Key, Op, Parsed, Verb};

const HEADER_BYTES: usize = 24;
const GET_QUIETLY: u8 = 0x0d;
const NOOP: u8 = 0x0a;

/// Appends a request.
pub(super) fn write(op: &Op, out: &mut Vec<u8>) {
    match op {
        Op::Get { keys } => packet(0x0c, &[], &keys[0].bytes(), &[], 0, out),
        Op::QuietGet { key } => {
            packet(GET_QUIETLY, &[], &key.bytes(), &[], 0, out);
            packet(NOOP, &[], &[], &[], 0, out);
        }
        Op::Store { verb, key, value, flags, exptime, quiet } => {
            let (code, quiet_code, cas) = match verb {
                Verb::Set => (0x01, 0x11, 0),
                Verb::Add => (0x02, 0x12, 0),
                Verb::Replace => (0x03, 0x13, 0),
                Verb::Append => (0x0e, 0x19, 0),
                Verb::Prepend => (0x0f, 0x1a, 0),
                Verb::Cas(cas) => (0x01, 0x11, *cas),
            };
            let extras = [flags.to_be_bytes(), exptime.to_be_bytes()].concat();
            let joins = matches!(verb, Verb::Append | Verb::Prepend);
            let extras = if joins { &[][..] } else { &extras[..] };
            let code = if *quiet { quiet_code } else { code };
            packet(code, extras, &key.bytes(), value, cas, out);
        }
        Op::Delete { key, quiet } => {
            packet(if *quiet { 0x14 } else { 0x04 }, &[], &key.bytes(), &[], 0, out);
        }
        Op::Increment { key, by } => {
            let mut extras = by.to_be_bytes().to_vec();
            extras.extend_from_slice(&[0; 8]);
            // A missing item is not made.
            extras.extend_from_slice(&[0xff; 4]);
            packet(0x05, &extras, &key.bytes(), &[], 0, out);
        }
        Op::Touch { key, exptime } => {
            packet(0x1c, &exptime.to_be_bytes(), &key.bytes(), &[], 0, out);
        }
        Op::GetTouch { key, exptime } => {
            packet(0x23, &exptime.to_be_bytes(), &key.bytes(), &[], 0, out);
        }
        Op::Nonsense => packet(0x7e, &[], &[], &[], 0, out),
    }
}

fn packet(code: u8, extras: &[u8], key: &[u8], value: &[u8], cas: u64, out: &mut Vec<u8>) {
    let body = (extras.len() + key.len() + value.len()) as u32;
    out.extend_from_slice(&[0x80, code]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    out.extend_from_slice(&body.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&cas.to_be_bytes());
    [extras, key, value].iter().for_each(|part| out.extend_from_slice(part));
}

/// A packet of the server.
struct Packet<'a> {
    code: u8,
    status: u16,
    cas: u64,
    extras: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
    used: usize,
}

fn parse(bytes: &[u8]) -> Result<Option<Packet<'_>>, String> {
    let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
    if header[0] != 0x81 {
        return Err(format!("{:#x} begins no answer", header[0]));
    }
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let body = u32::from_be_bytes(header[8..12].try_into().expect("four bytes")) as usize;
    let Some(body) = bytes.get(HEADER_BYTES..HEADER_BYTES + body) else { return Ok(None) };
    let (extras, rest) = body.split_at(usize::from(header[4]));
    let (key, value) = rest.split_at(usize::from(word(2)));
    let cas = u64::from_be_bytes(header[16..24].try_into().expect("eight bytes"));
    let used = HEADER_BYTES + body.len();
    Ok(Some(Packet { code: header[1], status: word(6), cas, extras, key, value, used }))
}

/// Reads the answer to a request.
pub(super) fn read(op: &Op, bytes: &[u8]) -> Parsed {
    let Some(first) = parse(bytes)? else { return Ok(None) };
    let used = first.used;
    if let Op::QuietGet { key } = op {
        if first.code == NOOP {
            return Ok(Some((used, Answer::Values(Vec::new()))));
        }
        let Some(second) = parse(&bytes[used..])? else { return Ok(None) };
        if second.code != NOOP {
            return Err(format!("an answer to {:#x} behind a quiet get", second.code));
        }
        return Ok(Some((used + second.used, value(&first, *key)?)));
    }
    let answer = match (first.status, op) {
        (0, Op::Get { keys }) => value(&first, keys[0])?,
        (0, Op::GetTouch { key, .. }) => value(&first, *key)?,
        (1, Op::Get { .. } | Op::GetTouch { .. }) => Answer::Values(Vec::new()),
        (0, Op::Store { .. }) => Answer::Stored,
        // A missing item for replace and cas, and one that is there for add.
        (1, Op::Store { verb: Verb::Replace, .. }) => Answer::NotStored,
        (2, Op::Store { verb: Verb::Add, .. }) => Answer::NotStored,
        (1, _) => Answer::NotFound,
        (2, _) => Answer::Exists,
        (3 | 0x82, _) => Answer::NoRoom,
        (5, _) => Answer::NotStored,
        (0, Op::Delete { .. }) => Answer::Deleted,
        (0, Op::Touch { .. }) => Answer::Touched,
        (0, Op::Increment { .. }) => match first.value.try_into() {
            Ok(number) => Answer::Number(u64::from_be_bytes(number)),
            Err(_) => return Err(format!("{} bytes are no number", first.value.len())),
        },
        (0x81, Op::Nonsense) => Answer::Refused,
        (status, _) => return Err(format!("status {status:#x}")),
    };
    Ok(Some((used, answer)))
}

fn value(packet: &Packet<'_>, key: Key) -> Result<Answer, String> {
    let flags = packet.extras.try_into().map_err(|_| "a value without flags".to_owned())?;
    let key = if packet.key.is_empty() { key.bytes() } else { packet.key.to_vec() };
    let cas = Some(packet.cas);
    let flags = u32::from_be_bytes(flags);
    Ok(Answer::Values(vec![Got { key, value: packet.value.to_vec(), flags, cas }]))
}
