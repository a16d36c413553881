//! What a target's `speaks` says of calls: encryption, metadata and a deadline, or a token.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::units::Span;
use bytes::Bytes;
use load::tls::{HTTP_2, Secure, TlsOptions, host_of};
use serde::Deserialize;
use wire::ProtocolError;

use crate::protocol::metadata::{from_base64, is_binary, is_name};
use crate::protocol::native::greeting::MOST_TOKEN_BYTES;
use crate::protocol::timeout;

/// The most metadata of a call, as servers count it: each has room for as much.
const MOST_BYTES: usize = 8 << 10;

/// What a field takes beside its name and value, as servers count it.
const FIELD_BYTES: usize = 32;

/// Names that HTTP has a meaning for, or that each call has anyway.
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// `speaks = { grpc = { authority = "example.org", metadata = { … }, deadline = "1s" } }`
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct GrpcOptions {
    pub(super) authority: String,
    metadata: Sent,
    deadline: Option<Span>,
    pub(super) tls: Option<TlsOptions>,
}

/// The options as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Which server is asked for, where several share an address.
    #[serde(default = "localhost")]
    authority: String,
    /// What each call says beside its message.
    #[serde(default)]
    metadata: Sent,
    /// How long the server may take for a call.
    deadline: Option<Span>,
    #[serde(default)]
    tls: bool,
    /// A PEM file with the authorities that are trusted instead of the system's.
    ca: Option<PathBuf>,
    /// Whether any certificate is taken.
    #[serde(default)]
    insecure: bool,
    /// Whom the server's certificate has to be for; the host of the authority unless stated.
    name: Option<String>,
}

fn localhost() -> String {
    "localhost".to_owned()
}

impl TryFrom<Written> for GrpcOptions {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { authority, metadata, deadline, tls, ca, insecure, name } = written;
        let tls = TlsOptions::of(tls, ca, insecure, name)?;
        Ok(Self { authority, metadata, deadline, tls })
    }
}

impl GrpcOptions {
    /// How connections are encrypted, if they are. Files are relative to `folder`.
    pub(super) fn secure(&self, folder: &Path) -> Result<Option<Secure>, ProtocolError> {
        let secure = |tls: &TlsOptions| tls.secure(folder, HTTP_2, host_of(&self.authority));
        self.tls.as_ref().map(secure).transpose()
    }

    /// The scheme that requests name.
    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The metadata of each call, as they are sent.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        self.metadata.0.clone()
    }

    /// How long the server may take for a call of the load, as it is sent.
    pub(super) fn timeout(&self) -> Option<String> {
        self.deadline.map(|span| timeout::format(span.duration()))
    }
}

/// Names and values, those of `-bin` names as base64.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
struct Sent(Vec<(String, String)>);

impl TryFrom<BTreeMap<String, String>> for Sent {
    type Error = String;

    fn try_from(fields: BTreeMap<String, String>) -> Result<Self, String> {
        for (name, value) in &fields {
            if !is_name(name) || RESERVED.contains(&&name[..]) {
                return Err(format!(
                    "\"{name}\" can't be sent: a name has lower-case letters, digits, \"-\", \"_\" \
                     and \".\", and is none of HTTP's or gRPC's own"
                ));
            }
            // The value may be a secret.
            if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || value.trim() != value {
                return Err(format!(
                    "the value of \"{name}\" can't be sent: it is printable ASCII without spaces \
                     around it"
                ));
            }
            if is_binary(name) && from_base64(value.as_bytes()).is_none() {
                return Err(format!("the value of \"{name}\" is no base64, as those of -bin are"));
            }
        }
        let bytes = |(name, value): (&String, &String)| name.len() + value.len() + FIELD_BYTES;
        let bytes: usize = fields.iter().map(bytes).sum();
        if bytes > MOST_BYTES {
            return Err(format!(
                "{bytes} bytes are more than {MOST_BYTES}, each field with 32 more"
            ));
        }
        Ok(Self(fields.into_iter().collect()))
    }
}

/// `speaks = { frames = { token = "…" } }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FramesOptions {
    /// With which a connection's greeting comes.
    #[serde(default)]
    token: Token,
}

impl FramesOptions {
    pub(super) fn token(&self) -> Bytes {
        Bytes::from(self.token.0.clone())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
struct Token(String);

impl TryFrom<String> for Token {
    type Error = String;

    fn try_from(token: String) -> Result<Self, String> {
        match token.len() {
            0..=MOST_TOKEN_BYTES => Ok(Self(token)),
            bytes => Err(format!("a token of {bytes} bytes is longer than {MOST_TOKEN_BYTES}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn fields_are_sent_by_their_names_and_the_deadline_by_itself() {
        let options: GrpcOptions = read(
            "deadline = '1500ms'\nmetadata = { x-more = '', authorization = 'Bearer a', x-bin = \
             'AAH/' }",
        )
        .expect("options");
        assert_eq!(options.authority, "localhost");
        let fields = options.fields();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let right = [("authorization", "Bearer a"), ("x-bin", "AAH/"), ("x-more", "")];
        assert_eq!(fields, right);
        assert_eq!(options.timeout().as_deref(), Some("1500000u"));
        assert!(read::<GrpcOptions>("").expect("none").fields().is_empty());
    }

    #[test]
    fn what_cannot_be_sent_is_named_without_its_value() {
        for (field, words) in [
            ("Authorization = 'SECRET'", "\"Authorization\" can't be sent"),
            ("te = 'SECRET'", "\"te\" can't be sent"),
            ("grpc-timeout = 'SECRET'", "\"grpc-timeout\" can't be sent"),
            ("x = 'SECRETé'", "the value of \"x\" can't be sent"),
            ("x = ' SECRET'", "the value of \"x\" can't be sent"),
            ("x-bin = 'SECRET!'", "the value of \"x-bin\" is no base64"),
        ] {
            let why = read::<GrpcOptions>(&format!("metadata = {{ {field} }}"));
            let why = why.expect_err("refused");
            assert!(why.contains(words) && !why.contains("SECRET"), "{field}: {why}");
        }
        let long = format!("metadata = {{ x = '{}' }}", "y".repeat(MOST_BYTES - 32));
        assert!(read::<GrpcOptions>(&long).expect_err("too long").starts_with("8193 bytes are"));
        let why = read::<GrpcOptions>("insecure = true").expect_err("without TLS");
        assert!(why.contains("add tls = true"), "{why}");
        assert!(read::<GrpcOptions>("tls = true\nca = 'a.pem'").expect("options").is_encrypted());
        let long = format!("token = '{}'", "y".repeat(513));
        assert!(read::<FramesOptions>(&long).expect_err("too long").contains("513"));
    }
}
