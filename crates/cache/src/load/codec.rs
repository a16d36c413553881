//! The request parsers of a cache, as operations in a process: what understanding a request costs
//! without a socket, a store or an answer.

use std::hint::black_box;
use std::sync::Arc;

use load::kv::{Oracle, Role, Rules, Store};
use load::{Busy, DialectRow, Finding, Op, Reach, Service, Speaks};
use wire::ProtocolError;

use crate::protocol::MAX_KEY_BYTES;
use crate::protocol::binary::{HEADER_BYTES, Header, REQUEST};
use crate::protocol::text::{self, Command};

/// The service.
pub static CODECS: Service = Service {
    name: "cache-codec",
    doc: "The request parsers of a cache, without a socket.",
    read: |part| Ok(Store::read(part, &RULES)?.in_process(parser)),
    dialects: &[
        DialectRow::new("text", "memcached's text protocol.", Reach::InProcess),
        DialectRow::new("meta", "memcached's meta commands.", Reach::InProcess),
        DialectRow::new("binary", "memcached's binary protocol.", Reach::InProcess),
    ],
};

/// The operation `read_get`, as an index into [`RULES`]' operations.
const READ_GET: usize = 0;

static RULES: Rules = Rules {
    operations: &[
        ("read_get", Role::Read, "Understands a get of one key."),
        ("read_set", Role::Read, "Understands a set's head."),
    ],
    longest_key_bytes: MAX_KEY_BYTES,
    longest_value_bytes: 1 << 20,
};

fn parser(oracle: &Arc<Oracle>, speaks: &Speaks) -> Result<Box<dyn Busy>, ProtocolError> {
    let form = match speaks.dialect.name {
        "text" => Form::Text,
        "meta" => Form::Meta,
        _ => Form::Binary,
    };
    Ok(Parser::boxed(oracle, form))
}

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Meta,
    Binary,
}

/// A request, as it comes from a client.
struct Request {
    operation: usize,
    bytes: Vec<u8>,
    key: Vec<u8>,
}

/// Understands requests of one form.
struct Parser {
    oracle: Arc<Oracle>,
    form: Form,
    requests: Vec<Request>,
    /// Where a key goes that is written in base64.
    decoded: [u8; MAX_KEY_BYTES],
}

impl Parser {
    fn boxed(oracle: &Arc<Oracle>, form: Form) -> Box<dyn Busy> {
        Box::new(Self {
            oracle: Arc::clone(oracle),
            form,
            requests: Vec::new(),
            decoded: [0; MAX_KEY_BYTES],
        })
    }

    /// The head of a request about a key, for a value of `value_bytes` where it sets one.
    fn write(&self, operation: usize, key: &[u8], value_bytes: usize) -> Vec<u8> {
        let (is_get, named) = (operation == READ_GET, String::from_utf8_lossy(key));
        match self.form {
            Form::Text if is_get => format!("get {named}\r\n").into_bytes(),
            Form::Text => format!("set {named} 0 0 {value_bytes}\r\n").into_bytes(),
            Form::Meta if is_get => format!("mg {named} v\r\n").into_bytes(),
            Form::Meta => format!("ms {named} {value_bytes}\r\n").into_bytes(),
            Form::Binary => {
                let extras: &[u8] = if is_get { &[] } else { &[0; 8] };
                let value_bytes = if is_get { 0 } else { value_bytes };
                let body_bytes = (extras.len() + key.len() + value_bytes) as u32;
                let mut bytes = vec![REQUEST, u8::from(!is_get)];
                bytes.extend((key.len() as u16).to_be_bytes());
                bytes.extend([extras.len() as u8, 0, 0, 0]);
                bytes.extend(body_bytes.to_be_bytes());
                bytes.resize(HEADER_BYTES, 0);
                bytes.extend(extras);
                bytes.extend(key);
                bytes
            }
        }
    }

    /// The key of a request, when it is understood as what it is.
    #[inline]
    fn read<'b>(
        form: Form,
        operation: usize,
        bytes: &'b [u8],
        decoded: &'b mut [u8; MAX_KEY_BYTES],
    ) -> Option<&'b [u8]> {
        match form {
            Form::Text | Form::Meta if operation == READ_GET => Some(text::plain_read(bytes)?.key),
            Form::Text | Form::Meta => match text::read_line(bytes.strip_suffix(b"\r\n")?) {
                Ok(Command::Set(set)) => set.key.ok(),
                Ok(Command::MetaSet(meta, _)) => Some(meta.key(decoded)),
                _ => None,
            },
            Form::Binary => {
                let header = Header::read(bytes.first_chunk()?)?;
                header.value_bytes()?;
                bytes[HEADER_BYTES + header.extras_bytes..].get(..header.key_bytes)
            }
        }
    }
}

impl Busy for Parser {
    fn ready(&mut self, op: Op) {
        let mut key = Vec::new();
        let number = op.what;
        self.oracle.keys.put(number, &mut key);
        let bytes = self.write(op.operation, &key, self.oracle.values.len(number));
        self.requests.push(Request { operation: op.operation, bytes, key });
    }

    #[inline]
    fn call(&mut self, index: usize) -> usize {
        let Request { operation, bytes, .. } = &self.requests[index];
        black_box(Self::read(self.form, *operation, black_box(bytes), &mut self.decoded));
        bytes.len()
    }

    fn check(&mut self, index: usize) -> Result<(), Box<Finding>> {
        let Request { operation, bytes, key } = &self.requests[index];
        let read = Self::read(self.form, *operation, bytes, &mut self.decoded);
        if read == Some(key) {
            return Ok(());
        }
        Err(Box::new(Finding {
            operation: RULES.operations[*operation].0.into(),
            key: key.clone(),
            expected: key.clone(),
            received: read.unwrap_or_default().to_vec(),
            note: format!("another key is read in {:?}", String::from_utf8_lossy(bytes)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::kv::{Keys, Values};

    #[test]
    fn every_form_of_every_operation_is_understood() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 100));
        let oracle = Arc::new(oracle);
        for form in [Form::Text, Form::Meta, Form::Binary] {
            let mut parser = Parser::boxed(&oracle, form);
            for (index, operation) in [READ_GET, READ_GET + 1].into_iter().enumerate() {
                parser.ready(Op { operation, what: index as u64 });
                assert_eq!(parser.check(index), Ok(()), "{form:?}");
                assert!(parser.call(index) > 8, "{form:?}");
            }
        }
    }

    #[test]
    fn another_key_than_the_requests_is_found() {
        let oracle = Oracle::new(Keys::new(10, 8).unwrap(), Values::new(1, 100));
        let requests = vec![Request {
            operation: READ_GET,
            bytes: b"get other\r\n".to_vec(),
            key: b"k0000001".to_vec(),
        }];
        let mut parser =
            Parser { oracle: Arc::new(oracle), form: Form::Text, requests, decoded: [0; 250] };
        assert_eq!(parser.check(0).unwrap_err().received, b"other");
    }
}
