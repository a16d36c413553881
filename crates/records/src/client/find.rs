//! Where a channel is: searches by datagrams and through name servers.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Client, ClientError, Settings};
use crate::environment::ClientEnvironment;
use crate::protocol::messages::{Guid, Search, SearchResponse};
use crate::protocol::{Command, HEADER_BYTES, Header, Order, Reader, Sender, message};

/// A search that isn't answered is said again after so long, then after twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A server that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Who it is.
    pub guid: Guid,
    /// Where it is.
    pub server: SocketAddr,
}

/// Finds the server of a channel.
///
/// # Errors
/// When nobody has it, as far as can be seen in time.
pub fn find(
    name: &str,
    environment: &ClientEnvironment,
    settings: &Settings,
) -> Result<SocketAddr, ClientError> {
    for server in &environment.name_servers {
        let asked = Client::connect(*server, settings.clone()).and_then(|mut it| it.search(name));
        if let Ok(Some(found)) = asked {
            return Ok(found);
        }
    }
    let found = search(Some(name), environment, settings.timeout)?;
    let first = found.first().ok_or_else(|| ClientError::NotFound(name.to_owned()))?;
    Ok(first.server)
}

/// All servers that answer within `wait`.
///
/// # Errors
/// When the system has no socket for it.
pub fn servers(environment: &ClientEnvironment, wait: Duration) -> Result<Vec<Found>, ClientError> {
    search(None, environment, wait)
}

/// Searches a name until it is found; without one, has every server answer.
fn search(
    name: Option<&str>,
    environment: &ClientEnvironment,
    wait: Duration,
) -> Result<Vec<Found>, ClientError> {
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let failed = |error| ClientError::Io(nowhere, error);
    let socket = UdpSocket::bind(nowhere).map_err(failed)?;
    socket.set_broadcast(true).map_err(failed)?;
    let port = socket.local_addr().map_err(failed)?.port();
    let end = Instant::now() + wait;
    let (mut all, mut pause, mut sequence) = (Vec::new(), FIRST_WAIT, 0);
    let mut buffer = vec![0; 64 << 10];
    while Instant::now() < end && !environment.searches.is_empty() {
        for to in &environment.searches {
            let is_unicast = !matches!(to, SocketAddr::V4(at)
                if at.ip().is_broadcast() || at.ip().is_multicast());
            let asked = Search {
                sequence,
                must_reply: name.is_none(),
                is_unicast,
                reply_to: (Ipv4Addr::UNSPECIFIED, port).into(),
                protocols: vec![Arc::from("tcp")],
                channels: name.iter().map(|name| (1, Arc::from(*name))).collect(),
            };
            let mut bytes = Vec::new();
            message(&mut bytes, Sender::Client, Order::Little, Command::Search, |writer| {
                asked.write(writer);
            });
            // A network that isn't there is found out by nobody's answering.
            let _ = socket.send_to(&bytes, to);
        }
        sequence += 1;
        let again = (Instant::now() + pause).min(end);
        pause *= 2;
        while let Some(left) = again.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
        {
            socket.set_read_timeout(Some(left)).map_err(failed)?;
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    let found = answer(&buffer[..len], from, name.is_some());
                    all.extend(found.filter(|found| !all.contains(found)));
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    break;
                }
                // Such as a search before that has reached nobody.
                Err(_) => {}
            }
            if name.is_some() && !all.is_empty() {
                return Ok(all);
            }
        }
    }
    Ok(all)
}

/// Who answers with this datagram; nobody, when it has nothing, though it was asked for something.
fn answer(datagram: &[u8], from: SocketAddr, must_have: bool) -> Option<Found> {
    let header = Header::read(datagram.first_chunk::<HEADER_BYTES>()?).ok()?;
    if header.is_control || header.command() != Command::SearchResponse {
        return None;
    }
    let mut reader = Reader::new(&datagram[HEADER_BYTES..], header.order);
    let said = SearchResponse::read(&mut reader);
    if reader.end().is_err() || &*said.protocol != "tcp" || (must_have && !said.found) {
        return None;
    }
    let ip = if said.server.ip().is_unspecified() { from.ip() } else { said.server.ip() };
    Some(Found { guid: said.guid, server: SocketAddr::new(ip, said.server.port()) })
}

impl Client {
    /// Asks a name server for a channel.
    fn search(&mut self, name: &str) -> Result<Option<SocketAddr>, ClientError> {
        let sequence = self.number();
        let asked = Search {
            sequence,
            must_reply: true,
            is_unicast: true,
            reply_to: (Ipv4Addr::UNSPECIFIED, 0).into(),
            protocols: vec![Arc::from("tcp")],
            channels: vec![(1, Arc::from(name))],
        };
        self.say(Command::Search, |writer| asked.write(writer))?;
        let answer = self.wait(|message| message.command == Command::SearchResponse)?;
        let said = self.read(&answer, SearchResponse::read)?;
        let own = self.address();
        let ip = if said.server.ip().is_unspecified() { own.ip() } else { said.server.ip() };
        // Without an address it is the name server itself, whatever it takes its port to be.
        let port = if said.server.ip().is_unspecified() { own.port() } else { said.server.port() };
        Ok(said.found.then(|| SocketAddr::new(ip, port)))
    }
}
