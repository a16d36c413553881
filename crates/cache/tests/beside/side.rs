//! One of two servers that are told the same. Unique numbers are the servers' own: they are
//! compared by the order in which they first appear, and used by what the server itself gave.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// In a command, this and a key stand for the unique number last given for that key.
pub(crate) const UNIQUE: &str = "<cas:";

/// A unique number that no server has given.
const NEVER: u64 = 999_999_999_999;

pub(crate) struct Side {
    socket: TcpStream,
    received: Vec<u8>,
    /// The unique number last given for each key.
    known: HashMap<String, u64>,
    /// For each unique number, which it was.
    order: HashMap<u64, usize>,
    sync: u64,
}

impl Side {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("no delay");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        let (known, order) = (HashMap::new(), HashMap::new());
        Self { socket, received: Vec::new(), known, order, sync: 0 }
    }

    /// Receives until what came ends with `end`, and gives what came before that.
    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut chunk = [0; 65536];
        while !self.received.ends_with(end) {
            match self.socket.read(&mut chunk) {
                Ok(0) => panic!("closed after {:?}", String::from_utf8_lossy(&self.received)),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) => {
                    let shown = String::from_utf8_lossy(&self.received);
                    panic!("{error} after {shown:?}, waiting for {end:?}")
                }
            }
        }
        let mut all = std::mem::take(&mut self.received);
        all.truncate(all.len() - end.len());
        all
    }

    /// Says a text command, and gives the answer in comparable form.
    pub(crate) fn say(&mut self, command: &str) -> String {
        let mut said = command.to_owned();
        while let Some(at) = said.find(UNIQUE) {
            let end = at + said[at..].find('>').expect("a key and an end");
            let number = self.known.get(&said[at + UNIQUE.len()..end]).copied().unwrap_or(NEVER);
            said.replace_range(at..=end, &number.to_string());
        }
        self.sync += 1;
        let end = format!("EN Osync{}\r\n", self.sync);
        self.socket.write_all(said.as_bytes()).expect("sent");
        self.socket.write_all(format!("mg none Osync{}\r\n", self.sync).as_bytes()).expect("sent");
        let answer = self.until(end.as_bytes());
        self.comparable(command, &answer)
    }

    /// Says packets that end with a no-op of this opaque, and gives the answers.
    pub(crate) fn send(&mut self, packets: &[u8], end: &[u8]) -> Vec<u8> {
        self.socket.write_all(packets).expect("sent");
        self.until(end)
    }

    /// The number that stands for a unique number when it is compared.
    pub(crate) fn nth(&mut self, unique: u64) -> usize {
        let next = self.order.len() + 1;
        if unique == 0 { 0 } else { *self.order.entry(unique).or_insert(next) }
    }

    /// Notes the unique number of a key.
    pub(crate) fn know(&mut self, key: &str, unique: u64) {
        self.known.insert(key.to_owned(), unique);
    }

    /// The unique number last given for a key.
    pub(crate) fn unique(&self, key: &str) -> u64 {
        self.known.get(key).copied().unwrap_or(NEVER)
    }

    fn comparable(&mut self, command: &str, answer: &[u8]) -> String {
        let asked = command.split(' ').nth(1).unwrap_or_default().trim().to_owned();
        let mut shown = String::new();
        let mut rest = answer;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let line = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end..];
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let data = match words[..] {
                ["VALUE", _, _, bytes] | ["VALUE", _, _, bytes, _] => bytes.parse().ok(),
                ["VA", bytes, ..] => bytes.parse::<usize>().ok(),
                _ => None,
            };
            match words[..] {
                ["VALUE", key, flags, bytes, unique] => {
                    let unique = unique.parse().expect("a number");
                    self.know(key, unique);
                    let nth = self.nth(unique);
                    shown += &format!("VALUE {key} {flags} {bytes} #{nth}\r\n");
                }
                ["VA" | "HD" | "EN" | "NS" | "EX" | "NF", ..] => {
                    let words: Vec<_> = words.iter().map(|word| self.flag(&asked, word)).collect();
                    shown += &words.join(" ");
                    shown += "\r\n";
                }
                _ => shown += &line,
            }
            if let Some(bytes) = data {
                let end = (bytes + 2).min(rest.len());
                shown += &String::from_utf8_lossy(&rest[..end]);
                rest = &rest[end..];
            }
        }
        shown
    }

    /// A word of a meta answer: unique numbers by their order, times without their seconds.
    fn flag(&mut self, key: &str, word: &str) -> String {
        let Some(number) = word.get(1..).and_then(|digits| digits.parse::<u64>().ok()) else {
            return word.to_owned();
        };
        match &word[..1] {
            "c" => {
                if number != 0 {
                    self.know(key, number);
                }
                format!("c#{}", self.nth(number))
            }
            "t" => format!("t~{}", (number + 50) / 100),
            "l" => "l~".to_owned(),
            _ => word.to_owned(),
        }
    }
}
