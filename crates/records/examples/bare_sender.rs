//! The bound of a monitor of arrays: says just enough pvAccess for one client to subscribe, and
//! then sends it one prepared message again and again, with other first and last elements each
//! time. It has no records, makes no arrays and keeps no queue: a server can't be much faster with
//! that client.
//!
//! `bare_sender ELEMENTS COMMAND...` runs the client's command with `--server ADDRESS` after it,
//! and ends with it, as suites/records-array-client.toml does.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command as Program, ExitCode};
use std::sync::Arc;
use std::{env, thread};

use records::model::normative::{Parts, scalar_array};
use records::protocol::messages::{
    ChannelCreated, CreateChannels, Offer, RequestHead, ResponseHead, Search, SearchResponse,
    subcommand,
};
use records::protocol::{
    Bits, Command, Frame, Frames, Header, Order, Pool, Reader, Scalar, Sender, Status, Type, Value,
    Writer, control, message, zeros,
};
use wire::Bytes;

/// The array's field in the record: its first.
const ARRAY: usize = 1;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let elements = arguments.first().and_then(|text| text.parse::<usize>().ok());
    let (Some(elements @ 1..=100_000_000), [_, program, rest @ ..]) = (elements, &*arguments)
    else {
        eprintln!("say bare_sender ELEMENTS COMMAND..., with 1 to 100,000,000 elements");
        return ExitCode::from(2);
    };
    match serve(elements, program, rest) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves whoever connects for as long as the client's command runs.
fn serve(elements: usize, program: &str, rest: &[String]) -> std::io::Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that ends in the middle of a message is no error.
            thread::spawn(move || talk(stream, elements));
        }
    });
    let status = Program::new(program).args(rest).args(["--server", &address]).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Appends a message of the server.
fn say(out: &mut Vec<u8>, command: Command, body: impl FnOnce(&mut Writer<'_, Vec<u8>>)) {
    message(out, Sender::Server, Order::Little, command, body);
}

/// One connection: answers what comes until a monitor is started, and then only sends.
fn talk(mut stream: TcpStream, elements: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let here = stream.local_addr()?;
    let kind = scalar_array(Scalar::Long, Parts::default());
    let order = Header::control(Sender::Server, Order::Little, control::SET_ORDER, 0);
    let mut out = order.bytes().to_vec();
    let offer = Offer { buffer_bytes: 0, registry_size: 0, methods: vec![Arc::from("anonymous")] };
    say(&mut out, Command::Validation, |writer| offer.write(writer));
    let mut frames = Frames::new(Sender::Client, 1 << 16, Pool::new(0));
    let (mut input, mut chunk) = (Vec::new(), [0; 1 << 16]);
    loop {
        stream.write_all(&std::mem::take(&mut out))?;
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(&chunk[..count]);
        loop {
            let (used, frame) = frames.next(&input).map_err(std::io::Error::other)?;
            if let Some(Frame::Message { command, order, body, .. }) = &frame
                && let said = (*command, &mut body.reader(*order))
                && let Some(request) = answer(said, here, &kind, &mut out)
            {
                stream.write_all(&out)?;
                return send(stream, &kind, request, elements);
            }
            let is_idle = used == 0 && frame.is_none();
            input.drain(..used);
            if is_idle {
                break;
            }
        }
    }
}

/// Answers one message. Says the request of a monitor that is started by it.
fn answer(
    (command, reader): (Command, &mut Reader<'_>),
    here: SocketAddr,
    kind: &Type,
    out: &mut Vec<u8>,
) -> Option<u32> {
    match command {
        Command::Validation => say(out, Command::Validated, |writer| Status::ok().write(writer)),
        Command::Search => {
            let search = Search::read(reader);
            let response = SearchResponse {
                guid: *b"bare-sender ",
                sequence: search.sequence,
                server: here,
                protocol: Arc::from("tcp"),
                found: !search.channels.is_empty(),
                channels: search.channels.iter().map(|(number, _)| *number).collect(),
            };
            say(out, Command::SearchResponse, |writer| response.write(writer));
        }
        Command::CreateChannel => {
            for (client_id, _) in CreateChannels::read(reader).0 {
                let made = ChannelCreated { client_id, server_id: client_id, status: Status::ok() };
                say(out, command, |writer| made.write(writer));
            }
        }
        Command::Monitor => {
            let head = RequestHead::read(reader);
            if head.has(subcommand::CONTROL | subcommand::START) {
                return Some(head.request);
            }
            say(out, command, |writer| {
                ResponseHead { request: head.request, subcommand: subcommand::INIT }.write(writer);
                Status::ok().write(writer);
                writer.kind(Some(kind));
            });
        }
        _ => {}
    }
    None
}

/// Sends updates for as long as the client is there.
fn send(mut stream: TcpStream, kind: &Type, request: u32, elements: usize) -> std::io::Result<()> {
    let mut nodes = zeros(kind);
    nodes[ARRAY] = Value::array(Scalar::Long, Bytes::from(vec![0; elements * 8]));
    let changed: Bits = [ARRAY].into_iter().collect();
    let mut bytes = Vec::new();
    say(&mut bytes, Command::Monitor, |writer| {
        ResponseHead { request, subcommand: 0 }.write(writer);
        writer.changed(kind, &changed, &nodes);
        Bits::new().write(writer);
    });
    // The empty overrun set, one byte, is all that comes after the array.
    let end = bytes.len() - 1;
    let start = end - elements * 8;
    // In huge pages, as a server's arrays are.
    let mut prepared = Pool::new(0).take(bytes.len());
    let prepared = prepared.as_mut();
    prepared.copy_from_slice(&bytes);
    drop((bytes, nodes));
    for number in 1_i64.. {
        prepared[start..start + 8].copy_from_slice(&number.to_le_bytes());
        prepared[end - 8..end].copy_from_slice(&number.to_le_bytes());
        stream.write_all(prepared)?;
    }
    Ok(())
}
