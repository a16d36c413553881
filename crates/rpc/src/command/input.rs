//! Requests as they are typed: one value of JSON, or several one after another. Control plane.

use std::fs::File;
use std::io::{self, Cursor, Read};

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::Deserializer;
use serde_path_to_error::{Path, Segment, Track};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Requests that are read ahead of what is sent.
const AHEAD: usize = 16;

/// A request, or why what is typed is none.
pub(super) type Read1 = Result<Bytes, String>;

/// Begins to read what is typed: JSON itself, `@FILE`, or `-` for standard input.
pub(super) fn begin(
    written: Option<&str>,
    message: MessageDescriptor,
    is_stream: bool,
) -> io::Result<Receiver<Read1>> {
    let (name, source): (String, Box<dyn Read + Send>) = match written {
        Some("-") => ("standard input".to_owned(), Box::new(io::stdin())),
        Some(written) => match written.strip_prefix('@') {
            Some(path) => (path.to_owned(), Box::new(io::BufReader::new(File::open(path)?))),
            None => ("the request".to_owned(), Box::new(Cursor::new(written.to_owned()))),
        },
        // A stream may have no requests.
        None if is_stream => ("the request".to_owned(), Box::new(Cursor::new(String::new()))),
        None => ("the request".to_owned(), Box::new(Cursor::new("{}".to_owned()))),
    };
    let (sender, receiver) = channel(AHEAD);
    // Reading standard input waits as long as it likes.
    std::thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || read(&name, source, &message, &sender))?;
    Ok(receiver)
}

/// The message at a place of a request, with its fields.
fn fields(message: &MessageDescriptor, path: &Path) -> String {
    let mut at = message.clone();
    let mut path = path.iter();
    while let Some(segment) = path.next() {
        let Segment::Map { key } = segment else { continue };
        let by_name = at.get_field_by_json_name(key).or_else(|| at.get_field_by_name(key));
        let Some(Kind::Message(within)) = by_name.map(|field| field.kind()) else { continue };
        at = match within.is_map_entry() {
            true => {
                // Behind it is a key, which names no field, though one may have its name.
                path.next();
                match within.map_entry_value_field().kind() {
                    Kind::Message(value) => value,
                    _ => continue,
                }
            }
            false => within,
        };
    }
    let names: Vec<_> = at.fields().map(|field| field.json_name().to_owned()).collect();
    match &names[..] {
        [] => format!("{} has no fields", at.full_name()),
        names => format!("the fields of {} are {}", at.full_name(), names.join(", ")),
    }
}

fn read(
    name: &str,
    source: Box<dyn Read + Send>,
    message: &MessageDescriptor,
    sender: &Sender<Read1>,
) {
    let mut deserializer = Deserializer::from_reader(source);
    loop {
        match deserializer.end() {
            Ok(()) => return,
            Err(error) if error.is_io() => {
                let _ = sender.blocking_send(Err(format!("{name}: {error}")));
                return;
            }
            // There is more.
            Err(_) => {}
        }
        let mut track = Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
        let request = DynamicMessage::deserialize(message.clone(), tracked);
        let request = request.map(|request| request.encode_to_vec().into());
        let is_wrong = request.is_err();
        let request = request.map_err(|error| {
            let path = track.path();
            let field = match path.to_string() {
                path if path == "." || path == "?" => String::new(),
                path => format!("{path}: "),
            };
            let (is_json, error, of) = (!error.is_syntax(), error.to_string(), message.full_name());
            match error.contains("unrecognized field name") {
                true => format!("{name}: {field}{error}: {}", fields(message, &path)),
                false if is_json => format!("{name}: {field}{error} (it is to be a {of})"),
                false => {
                    format!("{name}: {field}{error}: JSON is meant, a {of}, with names in \"\"")
                }
            }
        });
        // Whoever waits for it may have ended.
        if sender.blocking_send(request).is_err() || is_wrong {
            return;
        }
    }
}
