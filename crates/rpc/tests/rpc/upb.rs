//! upb, the Protocol Buffers of Python and protoc's own, as an oracle of our encoding.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rpc::codecs::{any, by_name};

use crate::peers::{python, script};

/// What `build.rs` has written.
static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// How many messages are compared each way.
const MESSAGES: u64 = 1000;

struct Upb {
    child: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
    _limit: testing::Limit,
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // Even nothing is a word.
    format!("={digits}")
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix('=').expect(text);
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

impl Upb {
    fn start() -> Option<Self> {
        let python = python()?;
        let mut command = Command::new(python);
        command.arg(script("upb.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("Python runs");
        let limit = testing::Limit::of(&child);
        let mut asked = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        writeln!(asked, "{}", &hex(DESCRIPTORS)[1..]).expect("it reads");
        Some(Self { child, asked, answers, _limit: limit })
    }

    fn ask(&mut self, words: &str) -> String {
        writeln!(self.asked, "{words}").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        assert!(!line.is_empty(), "upb.py has ended at {words}");
        line.trim_end().to_owned()
    }

    /// The message as upb writes it, unless it refuses it.
    fn parse(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let answer = self.ask(&format!("parse {}", hex(bytes)));
        (answer != "refused").then(|| from_hex(&answer))
    }

    fn same(&mut self, one: &[u8], other: &[u8]) -> bool {
        self.ask(&format!("same {} {}", hex(one), hex(other))) == "True"
    }
}

impl Drop for Upb {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our message's bytes once more, with what we don't know.
fn again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    rpc::codecs::protobuf_again(bytes).map_err(|why| why.to_string())
}

#[test]
fn upb_reads_what_we_write_and_we_read_what_it_writes() {
    let Some(mut upb) = Upb::start() else { return };
    let row = by_name("protobuf").expect("it is there");
    for seed in 0..MESSAGES {
        let sample = any(seed, 3);
        let bytes = (row.encode)(&sample).expect("it can be encoded");
        let theirs =
            upb.parse(&bytes).unwrap_or_else(|| panic!("{seed}: upb refuses {bytes:02x?}"));
        assert_eq!((row.decode)(&theirs), Ok(sample), "{seed}");
        // Theirs has negative zeros, enumerations that aren't known, and unknown fields.
        let made = from_hex(&upb.ask(&format!("make {seed}")));
        let ours = again(&made).unwrap_or_else(|why| panic!("{seed}: {why}: {made:02x?}"));
        assert!(upb.same(&made, &ours), "{seed}: {made:02x?} became {ours:02x?}");
    }
}

#[test]
fn upb_and_we_refuse_the_same_bytes() {
    let Some(mut upb) = Upb::start() else { return };
    let (mut read, mut refused, mut other_wire_type, mut odd_entry) = (0, 0, 0, 0);
    let (mut wider, mut differing) = (0, Vec::new());
    for seed in 0..MESSAGES {
        let mut bytes = from_hex(&upb.ask(&format!("make {seed}")));
        let random = |salt: u64| load::scramble(load::scramble(seed) ^ salt) as usize;
        if bytes.is_empty() {
            continue;
        }
        match seed % 3 {
            0 => bytes.truncate(random(1) % bytes.len()),
            1 => {
                let place = random(2) % bytes.len();
                bytes[place] ^= 1 << (random(3) % 8);
            }
            _ => {
                let place = random(4) % bytes.len();
                bytes.insert(place, random(5) as u8);
            }
        }
        match (upb.parse(&bytes), again(&bytes)) {
            (Some(_), Ok(ours)) if upb.same(&bytes, &ours) => read += 1,
            // An entry of a map with fields that aren't known is itself unknown to upb; buffa takes
            // what it knows of it.
            (Some(_), Ok(_)) if upb.ask(&format!("odd-entry {}", hex(&bytes))) == "True" => {
                odd_entry += 1;
            }
            (None, Err(_)) => refused += 1,
            // buffa refuses a known field of another wire type, which upb keeps as unknown, and a
            // number of more than 64 bits, of which upb takes the lowest.
            (Some(_), Err(why)) if why.contains("wire type mismatch") => other_wire_type += 1,
            (Some(_), Err(why)) if why.contains("varint exceeded") => wider += 1,
            (theirs, ours) => {
                differing.push(format!("{seed}: {bytes:02x?}: upb {theirs:02x?}, we {ours:02x?}"));
            }
        }
    }
    let all = (read, refused, other_wire_type, odd_entry, wider);
    println!("read, refused, of another wire type, of an odd entry, too wide: {all:?}");
    assert!(differing.is_empty(), "{} differ: {}", differing.len(), differing.join("\n"));
    assert!(read > 100 && refused > 100 && odd_entry + wider < 20, "{all:?}");
}

#[test]
fn upb_and_we_go_as_deep() {
    let Some(mut upb) = Upb::start() else { return };
    for levels in [1, 99, 100, 101, 102] {
        let nested = (0..levels).fold(vec![0x08, 1], |inner, _| {
            let length = inner.len();
            let mut outer = vec![0x32];
            if length >= 0x80 {
                outer.push(length as u8 | 0x80);
                outer.push((length >> 7) as u8);
            } else {
                outer.push(length as u8);
            }
            outer.extend(inner);
            outer
        });
        assert_eq!(upb.parse(&nested).is_some(), again(&nested).is_ok(), "{levels}");
    }
}
