//! Requests as they are typed: one value of JSON, or several one after another. Control plane.

use std::fs::File;
use std::io::{self, Cursor, Read};

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Deserializer;
use serde_path_to_error::Track;
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
            let field = match track.path().to_string() {
                path if path == "." => String::new(),
                path => format!("{path}: "),
            };
            format!("{name}: {field}{error} (it is to be a {})", message.full_name())
        });
        // Whoever waits for it may have ended.
        if sender.blocking_send(request).is_err() || is_wrong {
            return;
        }
    }
}
