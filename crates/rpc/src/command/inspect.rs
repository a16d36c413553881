//! `loadline rpc inspect` and `loadline rpc codecs`: encodings byte by byte, and what codecs can.
//! Control plane.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use service::{Failure, Outcome, out};

use super::args::SessionArgs;
use super::session::failure;
use crate::client::Schema;
use crate::codecs::ROWS;
use crate::codecs::capabilities;
use crate::codecs::inspect::{Cause, Encoding, Inspection, MOST_BYTES, Piece};
use base::many;
use prost_reflect::MessageDescriptor;

const EXAMPLES: &str = "\
Examples:
  loadline rpc inspect 08960112026869
  loadline rpc inspect --proto my.proto --type my.Message @message.bin
  loadline rpc inspect '37 4a 4c 0f 04 00 00 00 e0'              Julia's Int64(1)
  loadline rpc inspect --codec julia '21 05 61 62 63 64 65'      its \"abcde\"
  loadline rpc inspect --codec cbor --json @-                    of standard input

Without --codec what begins as Julia's header is Julia's, a bracket is JSON, and the rest protobuf.
postcard and rkyv don't say what lies where: of them loadline.rpc.v1.Sample is read.";

/// The most bytes of a piece that are shown; --json has all of them.
const MOST_SHOWN: usize = 12;

/// Arguments of `loadline rpc inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InspectArgs {
    /// The encoding: protobuf, rkyv, postcard, msgpack, cbor, json or julia
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    codec: Option<Encoding>,

    /// What the message is: a type of --proto, or of this program's own, such as
    /// loadline.rpc.v1.Sample
    #[arg(long = "type", value_name = "NAME")]
    name: Option<String>,

    /// The bytes: hexadecimal, with spaces and 0x or without, or @FILE; @- is standard input
    #[arg(required = true)]
    bytes: Vec<String>,
}

fn encoding(written: &str) -> Result<Encoding, String> {
    let found = Encoding::ALL.iter().find(|(name, _)| *name == written);
    found.map(|(_, encoding)| *encoding).ok_or_else(|| {
        let names: Vec<_> = Encoding::ALL.iter().map(|(name, _)| *name).collect();
        format!("there are {}", names.join(", "))
    })
}

/// Prints the pieces of an encoding.
pub(super) fn inspect(args: &InspectArgs, session: &SessionArgs) -> Outcome {
    let bytes = bytes(&args.bytes.join(" "))?;
    let message = message(args, session)?;
    let guessed = match message {
        Some(_) => Encoding::Protobuf,
        None => Encoding::guess(&bytes),
    };
    let encoding = args.codec.unwrap_or(guessed);
    if message.is_some() && encoding != Encoding::Protobuf {
        return Err(Failure::Usage("--type: only protobuf has types of .proto files".to_owned()));
    }
    let inspection = encoding.inspect(&bytes, message.as_ref());
    match session.json {
        true => out::print(format!("{}\n", as_json(encoding, &bytes, &inspection)))?,
        false => out::print(as_text(&bytes, &inspection))?,
    }
    match inspection.fault {
        Some(fault) => Err(Failure::Other(fault.into())),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The bytes that are typed, or those of a file.
fn bytes(written: &str) -> Result<Vec<u8>, Failure> {
    let Some(path) = written.strip_prefix('@') else { return from_hex(written) };
    let mut bytes = Vec::new();
    // One more than are looked at, which is noticed then.
    let most = MOST_BYTES as u64 + 1;
    match path {
        "-" => std::io::stdin().take(most).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    }
    .with_context(|| path.to_owned())
    .map_err(Failure::usage)?;
    Ok(bytes)
}

fn from_hex(written: &str) -> Result<Vec<u8>, Failure> {
    let is_apart = |character: &char| character.is_whitespace() || matches!(character, ',' | ':');
    let mut digits = Vec::new();
    let mut characters = written.chars().enumerate().filter(|(_, one)| !is_apart(one)).peekable();
    while let Some((place, character)) = characters.next() {
        // Debuggers write it before each byte, or before all.
        let is_whole = digits.len().is_multiple_of(2);
        let follows = |next: &(usize, char)| *next == (place + 1, 'x');
        if is_whole && character == '0' && characters.next_if(follows).is_some() {
            continue;
        }
        let Some(digit) = character.to_digit(16) else {
            let why = format!(
                "character {} of the bytes, {character:?}, is no hexadecimal digit (@FILE names a \
                 file)",
                place + 1
            );
            return Err(Failure::Usage(why));
        };
        digits.push(digit as u8);
    }
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        let why = format!(
            "{}: a byte has two, so one is missing",
            many(digits.len(), "hexadecimal digit")
        );
        return Err(Failure::Usage(why));
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn message(
    args: &InspectArgs,
    session: &SessionArgs,
) -> Result<Option<MessageDescriptor>, Failure> {
    let Some(name) = &args.name else {
        if session.proto.is_empty() {
            return Ok(None);
        }
        return Err(Failure::Usage("--proto: say which message with --type NAME".to_owned()));
    };
    let pool = match session.proto.is_empty() {
        true => crate::protocol::proto::pool(),
        false => Schema::of_files(&session.proto, &session.import).map_err(failure)?.pool,
    };
    let found = pool.get_message_by_name(name.trim_start_matches('.'));
    found.map(Some).ok_or_else(|| {
        let files = session.proto.iter().map(|file| file.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        let who = if files.is_empty() { "this program" } else { &files[..] };
        Failure::Usage(format!("{who} has no message {name}"))
    })
}

fn hex(bytes: &[u8], most: usize) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(most) {
        // Writing to a string can't fail, here and below.
        let _ = write!(text, "{byte:02x} ");
    }
    text.pop();
    if bytes.len() > most {
        text.push_str(" …");
    }
    text
}

fn as_text(bytes: &[u8], inspection: &Inspection) -> String {
    let mut text = String::new();
    let (hex_width, field_width) = (3 * MOST_SHOWN + 1, 24);
    for piece in &inspection.pieces {
        let Piece { offset, length, depth, field, kind, value, cause } = piece;
        let shown = hex(&bytes[*offset..offset + length], MOST_SHOWN);
        let field = format!("{}{field}", "  ".repeat(*depth));
        let line = format!(
            "{offset:>6}  {shown:<hex_width$} {field:<field_width$} {:<8} {kind}  {value}",
            cause.name()
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let causes = Cause::ALL.iter().zip(inspection.causes()).filter(|(_, bytes)| *bytes > 0);
    let causes: Vec<_> = causes.map(|(cause, bytes)| format!("{} {bytes}", cause.name())).collect();
    let _ = writeln!(text, "{:>6}  bytes: {}", bytes.len(), causes.join(", "));
    text
}

fn as_json(encoding: Encoding, bytes: &[u8], inspection: &Inspection) -> serde_json::Value {
    let codec = Encoding::ALL.iter().find(|(_, one)| *one == encoding).map(|(name, _)| name);
    let pieces = inspection.pieces.iter().map(|piece| {
        let hex = hex(&bytes[piece.offset..piece.offset + piece.length], usize::MAX);
        json!({
            "offset": piece.offset,
            "length": piece.length,
            "hex": hex,
            "depth": piece.depth,
            "field": piece.field,
            "type": piece.kind,
            "value": piece.value,
            "cause": piece.cause.name(),
        })
    });
    let causes = Cause::ALL.iter().zip(inspection.causes());
    let causes: serde_json::Map<_, _> =
        causes.map(|(cause, bytes)| (cause.name().to_owned(), bytes.into())).collect();
    let fault = inspection.fault.as_ref();
    json!({
        "schema": 1,
        "codec": codec,
        "bytes": bytes.len(),
        "pieces": pieces.collect::<Vec<_>>(),
        "causes": causes,
        "fault": fault.map(|fault| json!({ "offset": fault.offset, "why": fault.why })),
    })
}

/// Prints what each codec can, found by trying it.
pub(super) fn codecs(is_json: bool) -> Outcome {
    if !is_json {
        out::print(capabilities::table())?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = ROWS.map(|row| row.name);
    let answers = capabilities::answers().into_iter().map(|(question, answers)| {
        let answers = names.iter().zip(answers).map(|(name, answer)| (*name, answer));
        let answers = answers.collect::<BTreeMap<_, _>>();
        json!({ "question": question, "answers": answers })
    });
    let codecs = ROWS.iter().map(|row| json!({ "name": row.name, "doc": row.doc }));
    let all = json!({
        "schema": 1,
        "codecs": codecs.collect::<Vec<_>>(),
        "capabilities": answers.collect::<Vec<_>>(),
    });
    out::print(format!("{all}\n"))?;
    Ok(ExitCode::SUCCESS)
}
