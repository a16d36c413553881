//! Whether an answer is right, found while its bytes pass by. Data plane: nothing of a right body
//! is kept, except for the first bytes of one that is known by its digest or length only.

use crate::protocol::Head;
use sha2::{Digest, Sha256};
use wire::ProtocolError;

use super::limits::MAX_BODY_BYTES;
use super::request::{ExpectedBody, Request};
use ::load::kv::Keys;
use ::load::{Done, Events, Finding, Tag};

/// As much of a wrong answer is shown; a finding keeps no more.
const MAX_SHOWN_BYTES: usize = 4096;

/// A difference further into a body than this is shown with this much before it.
const SHOWN_BEFORE_BYTES: usize = 1024;

/// What is wrong with an answer.
#[derive(Debug)]
struct Wrong {
    note: String,
    expected: Vec<u8>,
}

/// The answer under way.
#[derive(Debug, Default)]
pub(super) struct Answer {
    body_bytes: u64,
    /// Whether it is a "not there", which may be the right answer.
    is_missing: bool,
    /// Whether the server has too much to do, which may be the right answer.
    is_refusal: bool,
    digest: Sha256,
    /// The right body, where it holds the key.
    rendered: Vec<u8>,
    /// What came of it, to be shown if it is wrong.
    shown: Vec<u8>,
    /// The first thing that is wrong.
    wrong: Option<Wrong>,
}

impl Answer {
    /// The head has come; [`Answer::clear`] was called since the last one.
    #[inline]
    pub(super) fn begin(&mut self, request: &Request, keys: &Keys, key: u64, head: &Head<'_>) {
        if let ExpectedBody::Exactly(right) = &request.expected.body
            && right.has_key()
        {
            self.rendered.clear();
            right.put(keys, key, &mut self.rendered);
        }
        let expected = &request.expected;
        self.is_missing = matches!(head.status, 404 | 410);
        // Too Many Requests, Service Unavailable (RFC 6585, 4; RFC 9110, 15.6.4).
        self.is_refusal = matches!(head.status, 429 | 503) && head.status != expected.status;
        let is_right = |(name, value): &(String, Vec<u8>)| head.values(name).any(|v| v == value);
        if head.status != expected.status || !expected.headers.iter().all(is_right) {
            self.wrong = Some(wrong_head(request, head));
            self.show(head.bytes);
        }
    }

    /// The next bytes of the body have come. Returns whether it is still within its limit.
    #[inline]
    pub(super) fn body(&mut self, request: &Request, piece: &[u8]) -> bool {
        let is_right = match &request.expected.body {
            ExpectedBody::Exactly(right) if self.wrong.is_none() => {
                let right = right.same().unwrap_or(&self.rendered);
                let at = self.body_bytes as usize;
                let is_right = right.get(at..at.saturating_add(piece.len())) == Some(piece);
                if !is_right {
                    self.wrong = Some(difference(right, at, piece, &mut self.shown));
                }
                true
            }
            ExpectedBody::Digest(..) => {
                self.digest.update(piece);
                false
            }
            ExpectedBody::Long(_) => false,
            ExpectedBody::Any | ExpectedBody::Exactly(_) => self.wrong.is_none(),
        };
        if !is_right {
            self.show(piece);
        }
        self.body_bytes += piece.len() as u64;
        self.body_bytes <= MAX_BODY_BYTES
    }

    /// The answer is whole: returns what is wrong with it, if anything is.
    #[inline]
    pub(super) fn end(&mut self, request: &Request) -> bool {
        let came = self.body_bytes;
        match &request.expected.body {
            ExpectedBody::Any => {}
            ExpectedBody::Exactly(right) => {
                let right = right.same().unwrap_or(&self.rendered);
                // A longer one has been found to differ where it goes on.
                if came < right.len() as u64 && self.wrong.is_none() {
                    let at = came as usize;
                    let wrong = difference(right, at, &[], &mut self.shown);
                    self.wrong = Some(wrong);
                }
            }
            ExpectedBody::Long(bytes) => self.check_length(*bytes),
            ExpectedBody::Digest(right, bytes) => {
                let digest: [u8; 32] = self.digest.finalize_reset().into();
                if let Some(bytes) = bytes {
                    self.check_length(*bytes);
                }
                if digest != *right && self.wrong.is_none() {
                    let said = format!("sha256 {}, {came} bytes: ", hex(&digest));
                    self.shown.splice(..0, said.into_bytes());
                    self.wrong = Some(Wrong {
                        note: "the body is another: its SHA-256 differs".to_owned(),
                        expected: format!("sha256 {}", hex(right)).into_bytes(),
                    });
                }
            }
        }
        self.wrong.is_none()
    }

    fn check_length(&mut self, expected: u64) {
        let came = self.body_bytes;
        if came != expected && self.wrong.is_none() {
            self.wrong = Some(Wrong {
                note: format!("the body has {came} bytes, not {expected}"),
                expected: format!("{expected} bytes").into_bytes(),
            });
        }
    }

    /// The answer can't be understood, or is larger than may be: `rest` is what is left of it.
    /// There are no bytes that it should have had.
    #[cold]
    pub(super) fn give_up(&mut self, note: &str, rest: &[u8]) {
        self.show(rest);
        self.is_refusal = false;
        self.wrong.get_or_insert_with(|| Wrong { note: note.to_owned(), expected: Vec::new() });
    }

    /// Reports the request `tag`, whose answer is whole or given up on.
    #[inline]
    pub(super) fn report(
        &self,
        tag: Tag,
        is_right: bool,
        asked: (&Request, &Keys, u64),
        events: &mut Events,
    ) {
        if !is_right {
            let (request, keys, key) = asked;
            events.found(|| self.finding(request, keys, key));
        }
        events.done.push(match is_right {
            false if self.is_refusal => Done::refused(tag),
            _ => Done {
                misses: self.is_missing.into(),
                wrong: (!is_right).into(),
                ..Done::right(tag)
            },
        });
    }

    /// Forgets what was found so far: the next answer begins.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.body_bytes = 0;
        (self.is_missing, self.is_refusal) = (false, false);
        self.shown.clear();
        self.wrong = None;
    }

    #[inline]
    fn show(&mut self, bytes: &[u8]) {
        let room = MAX_SHOWN_BYTES.saturating_sub(self.shown.len());
        self.shown.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// What is wrong, with the bytes that came.
    #[cold]
    fn finding(&self, request: &Request, keys: &Keys, key: u64) -> Finding {
        let mut text = Vec::new();
        if request.has_key {
            keys.put(key, &mut text);
        }
        let wrong = self.wrong.as_ref();
        Finding {
            operation: request.name.clone().into(),
            key: text,
            expected: wrong.map(|wrong| wrong.expected.clone()).unwrap_or_default(),
            received: self.shown.clone(),
            note: wrong.map(|wrong| wrong.note.clone()).unwrap_or_default(),
        }
    }
}

/// That a body is larger than one may be.
#[cold]
pub(super) fn too_large() -> ProtocolError {
    ProtocolError::new(format!("the answer's body is larger than {} GiB", MAX_BODY_BYTES >> 30))
}

#[cold]
fn wrong_head(request: &Request, head: &Head<'_>) -> Wrong {
    let expected = &request.expected;
    if head.status != expected.status {
        return Wrong {
            note: format!("the status is {}, not {}", head.status, expected.status),
            expected: format!("{} {}", head.version(), expected.status).into_bytes(),
        };
    }
    let missed = |(name, value): &&(String, Vec<u8>)| !head.values(name).any(|v| v == value);
    let Some((name, value)) = expected.headers.iter().find(missed) else {
        return Wrong { note: String::new(), expected: Vec::new() };
    };
    let note = match head.values(name).next() {
        None => format!("the header {name} is missing"),
        Some(other) => format!("{name} is {:?}", String::from_utf8_lossy(other)),
    };
    Wrong { note, expected: [name.as_bytes(), b": ", value].concat() }
}

/// A body that was right for `at` bytes goes on with `piece`, which differs from what is right,
/// or ends there when that is empty. Keeps what is shown of it in `shown`.
#[cold]
fn difference(right: &[u8], at: usize, piece: &[u8], shown: &mut Vec<u8>) -> Wrong {
    let rest = right.get(at..).unwrap_or_default();
    let same = rest.iter().zip(piece).take_while(|(right, came)| right == came).count();
    let differs_at = at + same;
    let is_near = differs_at < MAX_SHOWN_BYTES - SHOWN_BEFORE_BYTES;
    let from = if is_near { 0 } else { differs_at - SHOWN_BEFORE_BYTES };
    // What came before this piece was right, so it need not have been kept.
    shown.clear();
    shown.extend_from_slice(right.get(from..at).unwrap_or_default());
    let piece = &piece[from.saturating_sub(at).min(piece.len())..];
    let room = MAX_SHOWN_BYTES.saturating_sub(shown.len());
    shown.extend_from_slice(&piece[..piece.len().min(room)]);
    let end = right.len().min(from + MAX_SHOWN_BYTES);
    let place = if from == 0 { String::new() } else { format!(" (shown from byte {from} on)") };
    let right_bytes = right.len();
    let note = match () {
        () if differs_at == right_bytes => {
            format!("the body goes on after its {right_bytes} bytes{place}")
        }
        () if piece.is_empty() => {
            format!("the body ends after {differs_at} of {right_bytes} bytes{place}")
        }
        () => format!("the body differs from byte {differs_at} on, counted from 0{place}"),
    };
    Wrong { note, expected: right.get(from..end).unwrap_or_default().to_vec() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
