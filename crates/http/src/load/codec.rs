//! HTTP/1.1's codec as operations in a process: what reading an answer and writing a request cost
//! without a socket.

use std::hint::black_box;
use std::sync::Arc;

use ::load::kv::{Oracle, Role, Rules, Store};
use ::load::{Busy, DialectRow, Finding, Op, Reach, Service};

use crate::protocol::{Part, RequestHead, Responses};

/// The service.
pub static CODECS: Service = Service {
    name: "http-codec",
    doc: "Reading and writing HTTP/1.1, without a socket.",
    read: |part| {
        let store = Store::read(part, &RULES)?;
        Ok(store.in_process(|oracle, _| Ok(Box::new(Codec::new(oracle)))))
    },
    dialects: &[DialectRow::new(
        "http",
        "The client side that `service = \"http\"` uses.",
        Reach::InProcess,
    )],
};

static RULES: Rules = Rules {
    operations: &[
        ("read_answer", Role::Read, "Reads an answer to its end."),
        ("write_request", Role::Read, "Writes a request's head."),
    ],
    longest_key_bytes: 250,
    longest_value_bytes: 1 << 20,
};

/// The operation `read_answer`.
const READ_ANSWER: usize = 0;

const FIELDS: [(&str, &str); 2] = [("host", "localhost"), ("accept", "*/*")];

/// An answer as it comes, and the path that is asked for.
struct Case {
    operation: usize,
    answer: Vec<u8>,
    body_bytes: usize,
    path: String,
}

struct Codec {
    oracle: Arc<Oracle>,
    cases: Vec<Case>,
    written: Vec<u8>,
}

impl Codec {
    fn new(oracle: &Arc<Oracle>) -> Self {
        Self { oracle: Arc::clone(oracle), cases: Vec::new(), written: Vec::new() }
    }

    /// How long the answer's body is, when all of it is read.
    #[inline]
    fn read(answer: &[u8]) -> Option<usize> {
        let (mut responses, mut used, mut body_bytes) = (Responses::new(), 0, 0);
        loop {
            let (length, part) = responses.read(&answer[used..], false).ok()?;
            used += length;
            match part {
                Part::Head(head) => _ = black_box(head),
                Part::Body(piece) => body_bytes += piece.len(),
                Part::End { .. } => return Some(body_bytes),
                Part::More => return None,
            }
        }
    }

    #[inline]
    fn write(path: &str, into: &mut Vec<u8>) {
        into.clear();
        let request =
            RequestHead { method: "GET", target: path, headers: &FIELDS, body_bytes: None };
        request.put(into);
    }
}

impl Busy for Codec {
    fn ready(&mut self, op: Op) {
        let number = op.what;
        let body = self.oracle.example(number);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nserver: example\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let mut path = b"/".to_vec();
        self.oracle.keys.put(number, &mut path);
        self.cases.push(Case {
            operation: op.operation,
            answer: [head.as_bytes(), &body].concat(),
            body_bytes: body.len(),
            path: String::from_utf8_lossy(&path).into_owned(),
        });
    }

    #[inline]
    fn call(&mut self, index: usize) -> usize {
        let Case { operation, answer, path, .. } = &self.cases[index];
        if *operation == READ_ANSWER {
            black_box(Self::read(black_box(answer)));
            return answer.len();
        }
        Self::write(black_box(path), &mut self.written);
        black_box(&self.written).len()
    }

    fn check(&mut self, index: usize) -> Result<(), Box<Finding>> {
        self.call(index);
        let Case { operation, answer, body_bytes, path } = &self.cases[index];
        let (expected, received) = match *operation {
            READ_ANSWER => {
                let read = Self::read(answer).map(|read| read.to_string());
                (body_bytes.to_string(), read.unwrap_or_default())
            }
            _ => {
                let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\n\r\n");
                (head, String::from_utf8_lossy(&self.written).into_owned())
            }
        };
        if expected == received {
            return Ok(());
        }
        Err(Box::new(Finding {
            operation: RULES.operations[*operation].0.into(),
            key: path.clone().into_bytes(),
            expected: expected.into_bytes(),
            received: received.into_bytes(),
            note: "another result than the case was made for".into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::load::kv::{Keys, Values};

    #[test]
    fn answers_are_read_and_requests_written_as_they_should_be() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 100));
        let mut codec = Codec::new(&Arc::new(oracle));
        for operation in [0, 1] {
            codec.ready(Op { operation, what: 3 });
            assert_eq!(codec.check(operation), Ok(()));
            assert!(codec.call(operation) > 40);
        }
        codec.cases[0].body_bytes += 1;
        assert!(codec.check(0).is_err());
    }
}
