//! What is refused, as status and JSON: the one table of it.

use std::io::{self, Write};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::unsent::NoRoom;
use super::write_error::WriteError;
use crate::model::{ANSWER, ANSWER_BYTES, Damage, Refusal};
use crate::protocol::{ErrorBody, ErrorObject};

/// The most characters of a refusal: a request may repeat megabytes of its own in it.
const SAID: usize = 8 << 10;

/// A refusal, as it is answered.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) body: ErrorBody,
    /// The segment whose payload has to be fetched first: then it can be answered. Apart, because
    /// hardly any is of one, and all are returned.
    pub(super) elsewhere: Option<Box<u64>>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, error: impl ToString, fix: &str) -> Self {
        let mut error = error.to_string();
        if let Some((end, _)) = error.char_indices().nth(SAID) {
            error.replace_range(end.., "…");
        }
        let body = ErrorBody { error, fix: fix.to_owned(), object: None };
        Self { status, body, elsewhere: None }
    }

    /// A request that can't be read.
    pub(super) fn bad(error: impl ToString, fix: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, fix)
    }

    /// An error of the service itself.
    pub(super) fn own() -> Self {
        let (error, fix) = ("the service made an error", "look into its log, and report it");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error, fix)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        json(self.status, &self.body)
    }
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match json_bytes(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(refusal) => Fault::from(refusal).into_response(),
    }
}

/// The bytes of an answer in JSON.
///
/// # Errors
/// When they are too many.
pub(super) fn json_bytes(body: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    let mut written = Limited(Vec::new());
    // Maps with keys that aren't text are all else that is refused, and there are none.
    let (most, what) = (ANSWER_BYTES.most, ANSWER_BYTES.what);
    let done = serde_json::to_writer(&mut written, body);
    done.map(|()| written.0).map_err(|_| Refusal::TooMany(most + 1, most, what))
}

/// Takes as many bytes as an answer may have.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if (self.0.len() + bytes.len()) as u64 > ANSWER_BYTES.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<NoRoom> for Fault {
    fn from(_: NoRoom) -> Self {
        let error = "the answers that are being sent are too large together";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error, "ask again later, or for less")
    }
}

/// Why the state was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    NoRoom(NoRoom),
    Panicked,
}

impl From<NoRoom> for Unread {
    fn from(why: NoRoom) -> Self {
        Self::NoRoom(why)
    }
}

impl From<Unread> for Fault {
    fn from(why: Unread) -> Self {
        match why {
            Unread::NoRoom(why) => why.into(),
            Unread::Panicked => Self::own(),
        }
    }
}

/// The status of a refusal, and what can be done.
fn told(refusal: &Refusal) -> (StatusCode, &'static str) {
    use StatusCode as S;
    match refusal {
        Refusal::NoFolder(_) => (
            S::NOT_FOUND,
            "a path is as /set/folder, and a set is no folder: `loadline conditions list`, or \
             GET /api/v1/folders, lists all",
        ),
        Refusal::NoTag(_) | Refusal::NoNumber(_) => {
            (S::NOT_FOUND, "`loadline conditions tag list`, or GET /api/v1/tags, lists all")
        }
        Refusal::NoColumn(..) => {
            (S::NOT_FOUND, "`loadline conditions list`, or GET /api/v1/folders, lists all columns")
        }
        Refusal::NoChannel(..) => {
            (S::NOT_FOUND, "GET /api/v1/channels?folder=PATH lists all channels")
        }
        Refusal::NoRevision(..) => (S::NOT_FOUND, "ask for a revision that is there"),
        Refusal::Exists(what, _) if what.contains("folder") => {
            (S::CONFLICT, "choose another name; a folder has none below it, a set has no values")
        }
        Refusal::Exists(..) => (S::CONFLICT, "choose another name"),
        Refusal::LongDescription(_) => (S::BAD_REQUEST, "shorten it"),
        Refusal::Overlap { .. } => (
            S::CONFLICT,
            "end the object where the other one starts, or use a folder of several versions",
        ),
        Refusal::Locked(_) => (S::CONFLICT, "unlock the tag, or clone it"),
        Refusal::LockedBy(..) => (S::CONFLICT, "unlock the global tag, or clone this one"),
        Refusal::Picked(..) => (S::CONFLICT, "have the global tag pick another one first"),
        Refusal::WasPicked(..) => (S::CONFLICT, "keep it, or delete the global tag first"),
        Refusal::NotGlobal(_) | Refusal::NoSet(_) => {
            (S::CONFLICT, "a global tag is made of a folder set, with picks")
        }
        Refusal::NoPick(..) => (S::NOT_FOUND, "GET /api/v1/tags lists what each tag picks"),
        Refusal::OneVersion(_) => (S::CONFLICT, "tag what the head shows"),
        Refusal::ManyVersions(_) => {
            (S::CONFLICT, "insert what is to be shown: the head shows the newest")
        }
        Refusal::OtherTag(..) => (
            S::CONFLICT,
            "`loadline conditions tag list`, or GET /api/v1/tags, says what each tag is of",
        ),
        Refusal::BadName(..) => (
            S::BAD_REQUEST,
            "names have 1 to 255 bytes, no slash, no control character, no space at an end, no \
             comma in a channel's; a folder is named as /set/folder",
        ),
        Refusal::NoObjects(_) => {
            (S::BAD_REQUEST, "leave batches without objects out: they would change nothing")
        }
        Refusal::BadInterval(..) => (S::BAD_REQUEST, "leave until out for an open interval"),
        Refusal::BadPayload(_) => (S::CONFLICT, "its columns have changed: send it again"),
        Refusal::Nopayload(_) => (S::CONFLICT, "docs/nopayloaddb.md lists what is refused"),
        Refusal::TooMany(_, _, what) if [ANSWER.what, ANSWER_BYTES.what].contains(what) => {
            (S::PAYLOAD_TOO_LARGE, "ask for less, or for an export, which may be of any length")
        }
        Refusal::TooMany(..) => (S::PAYLOAD_TOO_LARGE, "ask for less, or insert it in parts"),
        Refusal::Damaged(Damage { elsewhere: Some(_), .. }) => {
            (S::SERVICE_UNAVAILABLE, "ask again")
        }
        Refusal::Damaged(_) => (
            S::INTERNAL_SERVER_ERROR,
            "`loadline conditions check` names all that is damaged; what is elsewhere is \
             served",
        ),
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let (status, fix) = told(&refusal);
        let mut fault = Self::new(status, &refusal, fix);
        match refusal {
            Refusal::Overlap { folder, place, channel, since, until, .. } => {
                fault.body.object = Some(ErrorObject { folder, place, channel, since, until });
            }
            Refusal::Damaged(damage) => fault.elsewhere = damage.elsewhere.map(Box::new),
            _ => {}
        }
        fault
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => refusal.into(),
            WriteError::TooLarge(_) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, error, "insert it in parts")
            }
            WriteError::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error, "send it again later")
            }
            WriteError::Unknown(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error,
                "ask whether it is there before it is sent again; reads go on",
            ),
            WriteError::Unsealed(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error,
                "see to what can't be written or is damaged; it is tried again, and reads go on",
            ),
            WriteError::Shared(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error,
                "see to what is full or can't be reached; it is tried again, and reads go on",
            ),
            WriteError::Disk(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error,
                "see to the disk, then start the service again; reads go on",
            ),
        }
    }
}
