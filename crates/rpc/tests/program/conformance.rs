//! The client that the conformance suite of Connect asks: calls what each message on standard input
//! says, and writes what has come of it to standard output, whichever is done first.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message as _;
use rpc::client::{CallOptions, Client, Encryption, Receiver, Sender, ServerAddress};
use rpc::protocol::metadata::Metadata;
use rpc::protocol::status::{Code, Ended, Status};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::TlsTrust;

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Calls that are under way at once.
const MOST_CALLS: usize = 8;

/// `COMPRESSION_GZIP`, and the kinds of calls.
const GZIP: i32 = 2;
const UNARY: i32 = 1;
const CLIENT_STREAM: i32 = 2;
const FULL_DUPLEX: i32 = 5;

/// `ClientCompatRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct Asked {
    #[prost(string, tag = "1")]
    test_name: String,
    #[prost(int32, tag = "5")]
    compression: i32,
    #[prost(string, tag = "6")]
    host: String,
    #[prost(uint32, tag = "7")]
    port: u32,
    #[prost(bytes = "vec", tag = "8")]
    server_tls_cert: Vec<u8>,
    #[prost(message, optional, tag = "9")]
    client_tls_creds: Option<Credentials>,
    #[prost(uint32, tag = "10")]
    message_receive_limit: u32,
    #[prost(string, tag = "11")]
    service: String,
    #[prost(string, tag = "12")]
    method: String,
    #[prost(int32, tag = "13")]
    stream_type: i32,
    #[prost(message, repeated, tag = "15")]
    request_headers: Vec<Header>,
    #[prost(message, repeated, tag = "16")]
    request_messages: Vec<Any>,
    #[prost(uint32, optional, tag = "17")]
    timeout_ms: Option<u32>,
    #[prost(uint32, tag = "18")]
    request_delay_ms: u32,
    #[prost(message, optional, tag = "19")]
    cancel: Option<Cancel>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Credentials {
    #[prost(bytes = "vec", tag = "1")]
    cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Header {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    value: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// When a call is given up.
#[derive(Clone, PartialEq, prost::Message)]
struct Cancel {
    /// A message without fields.
    #[prost(bytes = "vec", optional, tag = "1")]
    before_close_send: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "2")]
    after_close_send_ms: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    after_num_responses: Option<u32>,
}

/// Any message of an answer, whose payload stays as it is.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    payload: Vec<u8>,
}

/// `ClientCompatResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(string, tag = "1")]
    test_name: String,
    #[prost(message, optional, tag = "2")]
    response: Option<Outcome>,
    #[prost(message, optional, tag = "3")]
    error: Option<NotCalled>,
}

/// `ClientResponseResult`.
#[derive(Clone, PartialEq, prost::Message)]
struct Outcome {
    #[prost(message, repeated, tag = "1")]
    response_headers: Vec<Header>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    payloads: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    error: Option<Failed>,
    #[prost(message, repeated, tag = "4")]
    response_trailers: Vec<Header>,
    #[prost(int32, tag = "5")]
    num_unsent_requests: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Failed {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, optional, tag = "2")]
    message: Option<String>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    details: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct NotCalled {
    #[prost(string, tag = "1")]
    message: String,
}

/// `google.rpc.Status`, of which the details are wanted.
#[derive(Clone, PartialEq, prost::Message)]
struct Details {
    #[prost(bytes = "vec", repeated, tag = "3")]
    details: Vec<Vec<u8>>,
}

/// Does what is asked until standard input ends.
pub(crate) fn run() -> anyhow::Result<()> {
    let (sender, mut asked) = unbounded_channel();
    let reader = thread::spawn(move || -> io::Result<()> {
        while let Some(message) = next(&mut io::stdin())? {
            // The other side has ended only if it has failed.
            let _ = sender.send(message);
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut calls = JoinSet::new();
        while let Some(message) = asked.recv().await {
            // The suite's server waits 5 s for what a connection begins with.
            if calls.len() == MOST_CALLS {
                calls.join_next().await.transpose()?.transpose()?;
            }
            calls.spawn(answer(Asked::decode(&message[..])?));
        }
        while let Some(called) = calls.join_next().await {
            called??;
        }
        anyhow::Ok(())
    })?;
    reader.join().map_err(|_| anyhow::anyhow!("standard input"))??;
    Ok(())
}

/// The next message, behind its length.
fn next(input: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if input.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[1..])?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    input.read_exact(&mut message)?;
    Ok(Some(message))
}

async fn answer(asked: Asked) -> io::Result<()> {
    let test_name = asked.test_name.clone();
    let response = match call(&asked).await {
        Ok(outcome) => Response { test_name, response: Some(outcome), error: None },
        Err(error) => {
            let error = Some(NotCalled { message: format!("{error:#}") });
            Response { test_name, response: None, error }
        }
    };
    let bytes = response.encode_to_vec();
    let mut out = io::stdout().lock();
    out.write_all(&[&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat())?;
    out.flush()
}

async fn connect(asked: &Asked) -> anyhow::Result<Client> {
    let encryption = match &asked.server_tls_cert[..] {
        [] => None,
        authorities => {
            let own = asked.client_tls_creds.as_ref();
            let identity = own.map(|own| (&own.cert[..], &own.key[..]));
            let config = TlsTrust { authorities, identity }.config()?;
            Some(Encryption { config, name: None })
        }
    };
    let (host, port) = (asked.host.clone(), u16::try_from(asked.port)?);
    let address = ServerAddress::Tcp { host, port, is_encrypted: encryption.is_some() };
    Client::connect(&address, encryption, CONNECT_TIME).await
}

/// Makes the call, and says what has come of it.
async fn call(asked: &Asked) -> anyhow::Result<Outcome> {
    let client = connect(asked).await.context("no connection")?;
    let mut options = CallOptions { gzip: asked.compression == GZIP, ..CallOptions::default() };
    options.timeout = asked.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    if asked.message_receive_limit > 0 {
        options.max_message_bytes = asked.message_receive_limit as usize;
    }
    options.metadata = metadata(&asked.request_headers);
    let path = format!("/{}/{}", asked.service, asked.method);
    let mut outcome = Outcome::default();
    let ended = match client.open(&path, &options).await {
        Ok((sender, mut receiver)) => {
            let ended = converse(asked, sender, &mut receiver, &mut outcome).await;
            outcome.response_headers = headers(receiver.headers());
            ended.unwrap_or_else(|| receiver.ended())
        }
        Err(status) => Ended { status, trailers: Metadata::default() },
    };
    outcome.response_trailers = headers(&ended.trailers);
    outcome.error = failed(ended.status);
    Ok(outcome)
}

/// Sends the requests and takes the answers, as the kind of the call has it. Returns its end where
/// the receiver doesn't have it; one that is given up has none.
async fn converse(
    asked: &Asked,
    mut sender: Sender,
    receiver: &mut Receiver,
    outcome: &mut Outcome,
) -> Option<Ended> {
    let cancel = asked.cancel.clone().unwrap_or_default();
    let most = cancel.after_num_responses.map_or(usize::MAX, |count| count as usize);
    let count = asked.request_messages.len();
    for (at, request) in asked.request_messages.iter().enumerate() {
        sleep(Duration::from_millis(asked.request_delay_ms.into())).await;
        if sender.send(&request.value).await.is_err() {
            outcome.num_unsent_requests = (count - at) as i32;
            break;
        }
        if asked.stream_type == FULL_DUPLEX {
            let Some(answer) = receiver.next().await else {
                outcome.num_unsent_requests = (count - at - 1) as i32;
                break;
            };
            outcome.payloads.push(payload(&answer));
            if outcome.payloads.len() == most {
                return None;
            }
        }
    }
    if cancel.before_close_send.is_some() {
        return None;
    }
    // The receiver says how it has ended.
    let _ = sender.end();
    if let Some(ms) = cancel.after_close_send_ms {
        sleep(Duration::from_millis(ms.into())).await;
        return None;
    }
    if [UNARY, CLIENT_STREAM].contains(&asked.stream_type) {
        return Some(match receiver.only().await {
            Ok((answer, trailers)) => {
                outcome.payloads.push(payload(&answer));
                Ended { status: Status::ok(), trailers }
            }
            Err(ended) => ended,
        });
    }
    while let Some(answer) = receiver.next().await {
        outcome.payloads.push(payload(&answer));
        if outcome.payloads.len() == most {
            break;
        }
    }
    None
}

/// What an answer is about; a message of the suite that has none counts, too.
fn payload(answer: &[u8]) -> Vec<u8> {
    Answer::decode(answer).unwrap_or_default().payload
}

fn failed(status: Status) -> Option<Failed> {
    if status.code == Code::Ok {
        return None;
    }
    let details = Details::decode(&status.details[..]).unwrap_or_default().details;
    Some(Failed { code: status.code as i32, message: Some(status.message), details })
}

/// Metadata as the suite writes them: the values of a name together, bytes as base64.
fn headers(metadata: &Metadata) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for (name, value) in metadata.iter() {
        let value = match name.ends_with("-bin") {
            true => STANDARD_NO_PAD.encode(value),
            false => String::from_utf8_lossy(value).into_owned(),
        };
        match headers.iter_mut().find(|header| header.name == name) {
            Some(header) => header.value.push(value),
            None => headers.push(Header { name: name.to_owned(), value: vec![value] }),
        }
    }
    headers
}

fn metadata(headers: &[Header]) -> Metadata {
    let mut metadata = Metadata::default();
    for Header { name, value } in headers {
        let name = name.to_ascii_lowercase();
        for value in value {
            let bytes = STANDARD_NO_PAD.decode(value.trim_end_matches('='));
            let bytes = bytes.ok().filter(|_| name.ends_with("-bin"));
            metadata.add(name.clone(), bytes.unwrap_or_else(|| value.clone().into_bytes()));
        }
    }
    metadata
}
