//! How a command reaches channels, and prints. Control plane.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use service::out::{self, note};

use super::show;
use crate::client::{
    Channel, Client, ClientError, Event, Operation, OperationKind, Session, Settings, find,
};
use crate::environment::ClientEnvironment;
use crate::protocol::{Item, Request};

/// How long servers are waited for that don't have to be there.
pub(super) const WAIT: Duration = Duration::from_secs(1);

/// Opens a channel, and begins an operation on it.
pub(super) fn begin(
    client: &mut Client,
    name: &str,
    what: OperationKind,
    request: &Request,
) -> anyhow::Result<(Channel, Operation)> {
    let channel = client.channel(name).with_context(|| name.to_owned())?;
    let operation = client.begin(&channel, what, request).with_context(|| name.to_owned())?;
    Ok((channel, operation))
}

/// A record as JSON.
#[derive(Serialize)]
pub(super) struct RecordJson<'a> {
    pub(super) schema: u32,
    pub(super) name: &'a str,
    pub(super) value: show::NodesJson<'a>,
}

/// How a command finds servers, and prints.
pub(super) struct CommandContext {
    pub(super) server: Option<SocketAddr>,
    pub(super) settings: Settings,
    pub(super) environment: ClientEnvironment,
    pub(super) json: bool,
    pub(super) check: bool,
}

impl CommandContext {
    /// A connection to the server of a channel.
    pub(super) fn connect(&self, name: &str) -> anyhow::Result<Client> {
        let server = match self.server {
            Some(server) => server,
            None => find::find(name, &self.environment, &self.settings)
                .map_err(|error| advised(name, error))?,
        };
        self.connect_to(server)
    }

    pub(super) fn connect_to(&self, server: SocketAddr) -> anyhow::Result<Client> {
        let client = Client::connect(server, self.settings.clone());
        client.map_err(|error| advised("", error))
    }

    /// An operation on a channel. Unless it is to end with its connection, it connects again
    /// whenever that is lost, with a line on standard error.
    pub(super) fn session(
        &self,
        name: &str,
        is_once: bool,
        begin: impl FnMut(&mut Client, &Channel) -> Result<Operation, ClientError> + Send + 'static,
    ) -> anyhow::Result<Session> {
        let (server, environment) = (self.server, self.environment.clone());
        let (settings, wanted) = (self.settings.clone(), name.to_owned());
        let locate = move || match server {
            Some(server) => Ok(server),
            None => find::find(&wanted, &environment, &settings),
        };
        let session = Session::open(name, self.settings.clone(), locate, begin);
        let session = session.map_err(|error| advised(name, error))?;
        let name = name.to_owned();
        Ok(match is_once {
            true => session,
            false => session.reconnecting(move |event| report(&name, event)),
        })
    }

    /// The servers of channels, where there are any.
    pub(super) fn find_all(&self, names: &[&str]) -> anyhow::Result<Vec<Option<SocketAddr>>> {
        Ok(match self.server {
            Some(server) => vec![Some(server); names.len()],
            None => find::find_all(names, &self.environment, &self.settings, |error| {
                note(error.to_string());
            })?,
        })
    }

    pub(super) fn print_record(&self, name: &str, item: &Item) -> anyhow::Result<()> {
        let object = RecordJson { schema: 1, name, value: show::item_json(item) };
        self.print(&object, &format!("{name}  {}", show::record_line(item)))
    }

    pub(super) fn print(&self, object: &impl Serialize, text: &str) -> anyhow::Result<()> {
        let mut out = out::stream();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(object)?)?,
            false => writeln!(out, "{text}")?,
        }
        Ok(())
    }
}

/// Reports what happens to a channel's connection.
pub(super) fn report(name: &str, event: &Event<'_>) {
    note(match event {
        Event::Disconnected(why) => format!("{name}: disconnected: {why}; connecting again"),
        Event::Unreachable(why) => format!("{name}: not connected yet: {why}"),
        Event::Connected(server) => format!("{name}: connected to {server}"),
    });
}

/// An error with advice where there is any, and the channel that it is about.
pub(super) fn advised(name: &str, error: ClientError) -> anyhow::Error {
    let advice = match &error {
        ClientError::NotFound(_) => {
            "no server answers for it: name one with --server, or say where to search with \
             EPICS_PVA_ADDR_LIST"
                .to_owned()
        }
        ClientError::Io(server, _) => {
            format!("cannot reach {server}; start a server with `loadline serve records`")
        }
        _ if name.is_empty() => return error.into(),
        _ => name.to_owned(),
    };
    anyhow::Error::new(error).context(advice)
}
