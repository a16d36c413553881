//! What the header blocks of answers mean in gRPC (PROTOCOL-HTTP2.md). Data plane: a block that is
//! the same as the last right one means the same, for the table of fields has size 0.

use crate::protocol::http2::client::MAX_BLOCK_BYTES;
use crate::protocol::http2::hpack::Decoder;
use crate::protocol::percent;
use crate::protocol::status::Code;

/// The status of a call that went well.
const OK: u32 = 0;

/// What a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Messages follow.
    Begun,
    /// An interim response: the real one follows.
    Interim,
    /// The call is over, and went well.
    Over,
    /// The call is over with another status: it is refused.
    Refused(u32, String),
    /// It is no answer of gRPC.
    Wrong(String),
}

/// The fields that say something.
#[derive(Debug, Default)]
struct Fields {
    http: Option<Vec<u8>>,
    content_type: Option<Vec<u8>>,
    status: Option<Vec<u8>>,
    message: Vec<u8>,
}

/// Reads the blocks of one connection.
#[derive(Debug, Default)]
pub(super) struct Answers {
    decoder: Decoder,
    /// The last block that began an answer, and the last one that ended a call well.
    began: Vec<u8>,
    ended: Vec<u8>,
}

/// A status that isn't OK, in words.
pub(super) fn refusal(code: u32, text: &str) -> String {
    let name = Code::of(code.cast_signed()).name();
    format!("{name} ({code}): {text}")
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(200)].escape_ascii().to_string()
}

impl Fields {
    /// What the fields of a first block say about HTTP; `None` where they are a gRPC server's.
    fn fault(&self) -> Option<String> {
        match self.http.as_deref() {
            Some(b"200") => {}
            Some(status) => return Some(format!("HTTP status {}", shown(status))),
            None => return Some("no :status".to_owned()),
        }
        match self.content_type.as_deref() {
            Some(kind) if kind.starts_with(b"application/grpc") => None,
            Some(kind) => Some(format!("content-type {}", shown(kind))),
            None => Some("no content-type".to_owned()),
        }
    }

    fn ended(&self) -> Said {
        let Some(status) = self.status.as_deref() else {
            return Said::Wrong(self.fault().unwrap_or_else(|| "no grpc-status".to_owned()));
        };
        let code = std::str::from_utf8(status).ok().and_then(|digits| digits.parse::<u32>().ok());
        match code {
            Some(OK) => Said::Over,
            Some(code) => Said::Refused(code, refusal(code, &percent::decode(&self.message))),
            None => Said::Wrong(format!("grpc-status {}", shown(status))),
        }
    }
}

impl Answers {
    /// What a block says; `is_first` where it is the first one of its stream.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8], is_first: bool, ends: bool) -> Said {
        if is_first && !ends && block == self.began {
            return Said::Begun;
        }
        if !is_first && ends && block == self.ended {
            return Said::Over;
        }
        self.read_new(block, is_first, ends)
    }

    fn read_new(&mut self, block: &[u8], is_first: bool, ends: bool) -> Said {
        let mut fields = Fields::default();
        let read = self.decoder.read(block, MAX_BLOCK_BYTES, |name, value| match name {
            b":status" => fields.http = Some(value.to_vec()),
            b"content-type" => fields.content_type = Some(value.to_vec()),
            b"grpc-status" => fields.status = Some(value.to_vec()),
            b"grpc-message" => fields.message = value.to_vec(),
            _ => {}
        });
        if let Err(fault) = read {
            return Said::Wrong(fault.to_string());
        }
        let keep = |kept: &mut Vec<u8>| {
            kept.clear();
            kept.extend_from_slice(block);
        };
        match (is_first, ends) {
            (true, false) if fields.http.as_deref().is_some_and(|code| code.starts_with(b"1")) => {
                Said::Interim
            }
            (true, false) => match fields.fault() {
                Some(fault) => Said::Wrong(fault),
                None => {
                    keep(&mut self.began);
                    Said::Begun
                }
            },
            (false, false) => Said::Wrong("header fields between messages".to_owned()),
            (_, true) => {
                let said = fields.ended();
                if said == Said::Over && !is_first {
                    keep(&mut self.ended);
                }
                said
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let field = |(name, value): &(&str, &str)| {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            [&[0, name.len() as u8], name, &[value.len() as u8], value].concat()
        };
        fields.iter().flat_map(field).collect()
    }

    #[test]
    fn each_kind_of_answer_is_told_apart() {
        let mut answers = Answers::default();
        let mut read = |fields: &[(&str, &str)], is_first, ends| {
            let block = block(fields);
            let said = answers.read(&block, is_first, ends);
            assert_eq!(answers.read(&block, is_first, ends), said, "the second time, too");
            said
        };
        let begun = [(":status", "200"), ("content-type", "application/grpc+proto")];
        assert_eq!(read(&begun, true, false), Said::Begun);
        assert_eq!(read(&[("grpc-status", "0")], false, true), Said::Over);
        assert_eq!(read(&[(":status", "100")], true, false), Said::Interim);
        let refused = [("grpc-status", "9"), ("grpc-message", "gr%C3%B6%C3%9Fe %25 %4 %+f")];
        let text = "FAILED_PRECONDITION (9): größe % %4 %+f";
        assert_eq!(read(&refused, false, true), Said::Refused(9, text.to_owned()));
        let only = [&begun[..], &[("grpc-status", "12")]].concat();
        assert_eq!(read(&only, true, true), Said::Refused(12, "UNIMPLEMENTED (12): ".to_owned()));
        let mut wrong = |fields: &[(&str, &str)], ends| match read(fields, true, ends) {
            Said::Wrong(why) => why,
            said => panic!("{said:?}"),
        };
        assert_eq!(wrong(&[(":status", "404")], true), "HTTP status 404");
        let text = [(":status", "200"), ("content-type", "text/html")];
        assert_eq!(wrong(&text, false), "content-type text/html");
        assert_eq!(wrong(&begun, true), "no grpc-status");
        assert_eq!(wrong(&[("grpc-status", "x")], true), "grpc-status x");
        assert!(matches!(answers.read(&[0xbe], true, false), Said::Wrong(_)));
    }
}
