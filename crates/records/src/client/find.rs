//! Locating channels: searches by datagrams and through name servers.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Client, Settings};
use super::error::ClientError;
use crate::environment::ClientEnvironment;
use crate::protocol::messages::{Guid, Search, SearchResponse};
use crate::protocol::{Command, HEADER_BYTES, Header, Order, Reader, Sender, message};
use wire::ProtocolError;

/// An unanswered search is repeated after this time, then after twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A server that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// Its identity, which changes with each start.
    pub guid: Guid,
    /// Its address.
    pub server: SocketAddr,
}

/// A datagram with names is no longer than this, so that a network has not to divide it.
const NAMES_BYTES: usize = 1200;

/// How many names are searched for before their answers are read: what is sent at once to a server
/// has to fit into its socket's buffer.
const AT_ONCE: usize = 4096;

/// Finds the server of a channel.
///
/// # Errors
/// When no server answers that has it in time; if another program has answered instead, what came
/// from it.
pub fn find(
    name: &str,
    environment: &ClientEnvironment,
    settings: &Settings,
) -> Result<SocketAddr, ClientError> {
    let mut foreign = None;
    let found = find_all(&[name], environment, settings, |error| foreign = Some(error))?;
    let first = found.into_iter().flatten().next();
    first.ok_or_else(|| foreign.unwrap_or_else(|| ClientError::NotFound(name.to_owned())))
}

/// Finds the servers of channels, many names with each datagram: for each name its server's
/// address, or none where no server answers that has it in time. `observe` is called with what came
/// from programs that don't speak this protocol.
///
/// # Errors
/// When the system has no socket for it.
pub fn find_all(
    names: &[&str],
    environment: &ClientEnvironment,
    settings: &Settings,
    mut observe: impl FnMut(ClientError),
) -> Result<Vec<Option<SocketAddr>>, ClientError> {
    let mut all = vec![None; names.len()];
    for server in &environment.name_servers {
        if !all.contains(&None) {
            break;
        }
        let client = Client::connect(*server, settings.clone());
        let asked = client.and_then(|mut client| client.search(names, &mut all));
        // One that isn't there has none of them.
        if let Err(error @ ClientError::Broken(..)) = asked {
            observe(error);
        }
    }
    if all.contains(&None) && !environment.searches.is_empty() {
        let mut searcher = Searcher::open(environment)?;
        searcher.find(names, &mut all, settings.timeout)?;
        searcher.foreign.into_iter().for_each(observe);
    }
    Ok(all)
}

/// All servers that answer within `wait`, each with the address of its first answer.
///
/// # Errors
/// When the system has no socket for it.
pub fn servers(
    environment: &ClientEnvironment,
    wait: Duration,
) -> Result<Vec<FoundServer>, ClientError> {
    let mut seeker = Searcher::open(environment)?;
    let (end, mut pause) = (Instant::now() + wait, FIRST_WAIT);
    let mut all: Vec<FoundServer> = Vec::new();
    while Instant::now() < end {
        seeker.ask(Vec::new());
        let again = (Instant::now() + pause).min(end);
        pause *= 2;
        while let Some((found, _)) = seeker.receive(again)? {
            if all.iter().all(|known| known.guid != found.guid) {
                all.push(found);
            }
        }
    }
    Ok(all)
}

/// The number of the name at this place of a list.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The names that have no server yet, with their numbers.
fn missing(names: &[&str], all: &[Option<SocketAddr>]) -> Vec<(u32, Arc<str>)> {
    let open = names.iter().zip(all).enumerate().filter(|(_, (_, found))| found.is_none());
    open.map(|(place, (name, _))| (number(place), Arc::from(*name))).collect()
}

/// A socket that searches are sent from.
struct Searcher<'a> {
    socket: UdpSocket,
    port: u16,
    /// Whether the socket is one of IPv6, which reaches addresses of IPv4 as `::ffff:a.b.c.d`.
    is_v6: bool,
    to: &'a [SocketAddr],
    sequence: u32,
    buffer: Vec<u8>,
    /// What came last that is no message.
    foreign: Option<ClientError>,
}

impl<'a> Searcher<'a> {
    fn open(environment: &'a ClientEnvironment) -> Result<Self, ClientError> {
        let to = &environment.searches;
        let is_v6 = to.iter().any(SocketAddr::is_ipv6);
        let open = || {
            let socket = match is_v6 {
                true => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
                false => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            };
            socket.set_broadcast(true)?;
            let port = socket.local_addr()?.port();
            Ok::<_, std::io::Error>((socket, port))
        };
        let (socket, port) = open().map_err(failed)?;
        let buffer = vec![0; 64 << 10];
        Ok(Self { socket, port, is_v6, to, sequence: 0, buffer, foreign: None })
    }

    /// Searches for what has no server yet until it is found, less and less often.
    fn find(
        &mut self,
        names: &[&str],
        all: &mut [Option<SocketAddr>],
        wait: Duration,
    ) -> Result<(), ClientError> {
        let (end, mut pause) = (Instant::now() + wait, FIRST_WAIT);
        loop {
            let open = missing(names, all);
            if open.is_empty() || Instant::now() >= end {
                return Ok(());
            }
            for some in open.chunks(AT_ONCE) {
                self.ask_names(some);
                let again = (Instant::now() + pause).min(end);
                let mut left = some.len();
                while left > 0 {
                    let Some((found, numbers)) = self.receive(again)? else { break };
                    for number in numbers {
                        let Some(place) = all.get_mut(number as usize) else { continue };
                        // A late answer to an earlier search may be for another part of them.
                        left = left.saturating_sub(usize::from(place.is_none()));
                        place.get_or_insert(found.server);
                    }
                }
            }
            pause *= 2;
        }
    }

    /// Asks for these names, as many with each datagram as fit.
    fn ask_names(&mut self, names: &[(u32, Arc<str>)]) {
        let mut some: Vec<(u32, Arc<str>)> = Vec::new();
        let mut bytes = 0;
        for (number, name) in names {
            // A name goes with its number and its length.
            let more = name.len() + 9;
            if bytes + more > NAMES_BYTES && !some.is_empty() {
                self.ask(std::mem::take(&mut some));
                bytes = 0;
            }
            bytes += more;
            some.push((*number, Arc::clone(name)));
        }
        self.ask(some);
    }

    /// Searches for these names at all addresses; without any, for servers.
    fn ask(&mut self, channels: Vec<(u32, Arc<str>)>) {
        let mut asked = Search {
            sequence: self.sequence,
            must_reply: channels.is_empty(),
            is_unicast: true,
            reply_to: (Ipv4Addr::UNSPECIFIED, self.port).into(),
            protocols: vec![Arc::from("tcp")],
            channels,
        };
        self.sequence = self.sequence.wrapping_add(1);
        for to in self.to {
            asked.is_unicast = !matches!(to, SocketAddr::V4(at)
                if at.ip().is_broadcast() || at.ip().is_multicast());
            let mut bytes = Vec::new();
            message(&mut bytes, Sender::Client, Order::Little, Command::Search, |writer| {
                asked.write(writer);
            });
            let to = match to {
                SocketAddr::V4(at) if self.is_v6 => (at.ip().to_ipv6_mapped(), at.port()).into(),
                to => *to,
            };
            // An unreachable network shows as a missing answer.
            let _ = self.socket.send_to(&bytes, to);
        }
    }

    /// The next server that answers, and the numbers of its channels; none once it is `until`.
    fn receive(&mut self, until: Instant) -> Result<Option<(FoundServer, Vec<u32>)>, ClientError> {
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
        {
            self.socket.set_read_timeout(Some(left)).map_err(failed)?;
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, from)) => match answer(&self.buffer[..len], from) {
                    Ok(Some(answer)) => return Ok(Some(answer)),
                    Ok(None) => {}
                    Err(fault) => self.foreign = Some(ClientError::Broken(from, fault)),
                },
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    break;
                }
                // Such as an earlier search that was rejected.
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

fn failed(error: std::io::Error) -> ClientError {
    ClientError::Io((Ipv4Addr::UNSPECIFIED, 0).into(), error)
}

/// The server that answers with this datagram, and the numbers of its channels; none if it is
/// another message.
fn answer(
    datagram: &[u8],
    from: SocketAddr,
) -> Result<Option<(FoundServer, Vec<u32>)>, ProtocolError> {
    let Some(header) = datagram.first_chunk::<HEADER_BYTES>() else {
        return Err(ProtocolError::new("a datagram is shorter than a header"));
    };
    let header = Header::read(header)?;
    if header.is_control || header.command() != Command::SearchResponse {
        return Ok(None);
    }
    let mut reader = Reader::new(&datagram[HEADER_BYTES..], header.order);
    let said = SearchResponse::read(&mut reader);
    reader.end()?;
    if &*said.protocol != "tcp" {
        return Ok(None);
    }
    let is_senders = said.server.ip().is_unspecified();
    let ip = if is_senders { from.ip().to_canonical() } else { said.server.ip() };
    let found = FoundServer { guid: said.guid, server: SocketAddr::new(ip, said.server.port()) };
    Ok(Some((found, if said.found { said.channels } else { Vec::new() })))
}

impl Client {
    /// Asks a name server for the channels that have no server yet.
    fn search(
        &mut self,
        names: &[&str],
        all: &mut [Option<SocketAddr>],
    ) -> Result<(), ClientError> {
        for some in missing(names, all).chunks(AT_ONCE) {
            let sequence = self.number();
            let asked = Search {
                sequence,
                must_reply: true,
                is_unicast: true,
                reply_to: (Ipv4Addr::UNSPECIFIED, 0).into(),
                protocols: vec![Arc::from("tcp")],
                channels: some.to_vec(),
            };
            self.say(Command::Search, |writer| asked.write(writer))?;
            let answer = self.wait(|message| message.command == Command::SearchResponse)?;
            let said = self.read(&answer, SearchResponse::read)?;
            let own = self.address();
            // Without an address it is the name server itself, whatever it takes its port to be.
            let is_own = said.server.ip().is_unspecified();
            let server = if is_own { own } else { said.server };
            for number in said.channels.iter().filter(|_| said.found) {
                if let Some(place) = all.get_mut(*number as usize) {
                    place.get_or_insert(server);
                }
            }
        }
        Ok(())
    }
}
