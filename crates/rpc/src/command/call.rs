//! `loadline rpc call` and `health`. Control plane.

use std::io::Write as _;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::json;
use service::{Failure, Outcome, out};
use tokio::sync::mpsc;

use super::input::{self, Read1};
use super::ping::ToArgs;
use super::session::{Session, exit, failure};
use crate::client::{CallOptions, Receiver, Sender};
use crate::protocol::proto::health::health_check_response::ServingStatus;
use crate::protocol::proto::health::{HealthCheckRequest, HealthCheckResponse};
use crate::protocol::status::{Code, Ended, Status};

/// How long `health` waits without `--timeout`.
const HEALTH_TIME: Duration = Duration::from_secs(10);

const NO_REQUEST: &str = "there is no request: {} is one without fields";

/// What is called.
#[derive(Debug, clap::Args)]
pub(super) struct CallArgs {
    #[command(flatten)]
    pub(super) to: ToArgs,

    /// The function: package.Service/Method
    pub(super) method: String,

    /// The request as JSON, @FILE, or - for standard input; of a stream of requests a value each
    /// [default: one without fields]
    pub(super) request: Option<String>,
}

/// The requests, as they are typed.
pub(super) fn requests(
    method: &MethodDescriptor,
    written: Option<&str>,
) -> Result<mpsc::Receiver<Read1>, Failure> {
    input::begin(written, method.input(), method.is_client_streaming())
        .with_context(|| format!("cannot read {}", written.unwrap_or_default()))
        .map_err(Failure::usage)
}

/// A method as calls name it.
pub(super) fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Calls a function.
pub(super) async fn call(session: &Session, method: &str, request: Option<&str>) -> Outcome {
    let (service, _) = crate::client::split(method).map_err(failure)?;
    let (client, schema) = if session.has_files() {
        // What is wrong with them needs no server to be found.
        let schema = session.schema_of_files()?;
        schema.method(method).map_err(failure)?;
        (session.connect().await?, schema)
    } else {
        let client = session.connect().await?;
        let schema = session.schema(&client, &[service]).await?;
        (client, schema)
    };
    let method = schema.method(method).map_err(failure)?;
    let requests = requests(&method, request)?;
    let requests = if method.is_client_streaming() { requests } else { one(requests).await? };
    let (sender, receiver) = match client.open(&path(&method), &session.options).await {
        Ok(opened) => opened,
        Err(status) => return Ok(exit(&ended(status))),
    };
    let mut sending = pin!(send(sender, requests));
    let mut showing = pin!(show(receiver, &method));
    let mut is_sending = true;
    loop {
        tokio::select! {
            sent = &mut sending, if is_sending => {
                is_sending = false;
                sent.map_err(Failure::Usage)?;
            }
            shown = &mut showing => return Ok(exit(&shown?)),
        }
    }
}

/// Prints what a call is answered with, which is one message where the function isn't one that
/// streams; returns its end.
async fn show(mut receiver: Receiver, method: &MethodDescriptor) -> anyhow::Result<Ended> {
    if !method.is_server_streaming() {
        return Ok(match receiver.only().await {
            Ok((message, trailers)) => {
                print(message, method.output())?;
                Ended { status: Status::ok(), trailers }
            }
            Err(ended) => ended,
        });
    }
    while let Some(message) = receiver.next().await {
        print(message, method.output())?;
    }
    Ok(receiver.ended())
}

fn ended(status: Status) -> Ended {
    Ended { status, trailers: Default::default() }
}

/// The one request of a call that takes one, read before the call begins.
pub(super) async fn one(
    mut requests: mpsc::Receiver<Read1>,
) -> Result<mpsc::Receiver<Read1>, Failure> {
    let first = requests.recv().await.unwrap_or_else(|| Err(NO_REQUEST.to_owned()));
    let first = first.map_err(Failure::Usage)?;
    match requests.recv().await {
        None => {}
        Some(Ok(_)) => {
            let words = "this function takes one request, and there are several";
            return Err(Failure::Usage(words.to_owned()));
        }
        Some(Err(why)) => return Err(Failure::Usage(why)),
    }
    let (sender, receiver) = mpsc::channel(1);
    // It has room for one.
    let _ = sender.try_send(Ok(first));
    Ok(receiver)
}

/// Sends all requests. A call that has ended before reports it by its end.
async fn send(mut sender: Sender, mut requests: mpsc::Receiver<Read1>) -> Result<(), String> {
    while let Some(request) = requests.recv().await {
        if sender.send(&request?).await.is_err() {
            return Ok(());
        }
    }
    let _ = sender.end();
    Ok(())
}

/// Prints an answer as a line of JSON.
pub(super) fn print(message: Bytes, descriptor: MessageDescriptor) -> anyhow::Result<()> {
    let name = descriptor.full_name().to_owned();
    let message = DynamicMessage::decode(descriptor, message)
        .with_context(|| format!("the answer can't be read as {name}"))?;
    let options = SerializeOptions::new().skip_default_fields(false);
    let mut line = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut line);
    message.serialize_with_options(&mut serializer, &options)?;
    line.push(b'\n');
    let mut out = out::stream();
    out.write_all(&line)?;
    Ok(out.flush()?)
}

/// The end of a call of health. A server without that service may send no text with its refusal.
fn explained(mut ended: Ended) -> Ended {
    if ended.status.code == Code::Unimplemented && ended.status.message.is_empty() {
        ended.status.message = "the server has no service grpc.health.v1.Health".to_owned();
    }
    ended
}

/// Asks whether a server, or one of its services, serves.
pub(super) async fn health(session: &Session, service: String, json: bool) -> Outcome {
    let client = session.connect().await?;
    let path = "/grpc.health.v1.Health/Check";
    let request = HealthCheckRequest { service: service.clone() };
    // It is asked by scripts, which a server that hangs must not hold.
    let timeout = session.options.timeout.unwrap_or(HEALTH_TIME);
    let options = CallOptions { timeout: Some(timeout), ..session.options.clone() };
    let answer = match client.call(path, &request.encode_to_vec(), &options).await {
        Ok(answer) => answer,
        Err(ended) => return Ok(exit(&explained(ended))),
    };
    let HealthCheckResponse { status } =
        HealthCheckResponse::decode(answer).context("the answer is none of health")?;
    let status = ServingStatus::try_from(status).unwrap_or(ServingStatus::Unknown);
    let name = status.as_str_name();
    match json {
        true => {
            out::print(format!("{}\n", json!({ "schema": 1, "service": service, "status": name })))?
        }
        false => out::print(format!("{name}\n"))?,
    }
    Ok(match status {
        ServingStatus::Serving => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_health_is_explained_where_it_has_no_text() {
        let said = |code, words| explained(ended(Status::new(code, words))).status.message;
        assert!(said(Code::Unimplemented, "").contains("no service grpc.health.v1.Health"));
        // An answer that isn't one message has this code, too.
        let words = "the answer has no message, and one is due";
        assert_eq!(said(Code::Unimplemented, words), words);
        assert_eq!(said(Code::NotFound, ""), "");
    }
}
