//! Being found: searches and beacons over datagrams, and what searches over TCP share with them.
//! Control plane: a thread of its own, for sockets that servers of one host share.
//!
//! Several servers of a host receive what is sent to all; what is sent to this host alone reaches
//! only one of them, which forwards it to a group that all have joined on the loopback interface
//! (`Protocol-Messages.md`, `CMD_ORIGIN_TAG`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use wire::{Interest, Poller};

use super::channel::SERVICE_CHANNEL;
use super::respond::respond;
use super::service::Service;
use crate::protocol::messages::{Beacon, OriginTag, Search, SearchResponse};
use crate::protocol::{
    Command, HEADER_BYTES, Header, Order, Reader, Segment, Sender, Sink, message,
};

/// The group by which servers of one host tell each other of searches.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 128);

/// No datagram is larger.
const LARGEST_BYTES: usize = 64 << 10;

/// A socket is read so often before the others have their turn.
const MOST_RECEIVED: usize = 64;

/// Beacons come so often at first, for so long, and then so often (`CMD_BEACON`).
const FIRST_BEACONS: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(300));
const LATER_BEACONS: Duration = Duration::from_secs(180);

/// Where a server can be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Where it receives searches; nowhere, when there are none.
    pub listen: Vec<SocketAddr>,
    /// Where it sends beacons.
    pub beacons: Vec<SocketAddr>,
    /// Whose searches it doesn't answer.
    pub ignore: Vec<IpAddr>,
}

/// Which channels of a search are here.
pub(super) fn found(service: &Service, search: &Search) -> Vec<u32> {
    service.counts.searches.fetch_add(search.channels.len() as u64, Relaxed);
    if !search.allows_tcp() {
        return Vec::new();
    }
    let here = |name: &str| name == SERVICE_CHANNEL || service.find(name).is_some();
    let channels = search.channels.iter().filter(|(_, name)| here(name));
    channels.map(|(number, _)| *number).collect()
}

/// Answers a search, if there is something to say. `server` is where channels are made; the
/// connection that the search came by, where there is none.
pub(super) fn answer_search<S: Sink>(
    service: &Service,
    search: &Search,
    hits: &[u32],
    server: Option<SocketAddr>,
    out: &mut S,
) {
    if hits.is_empty() && !search.must_reply {
        return;
    }
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, service.port()));
    let response = SearchResponse {
        guid: service.guid,
        sequence: search.sequence,
        server: server.unwrap_or(any),
        protocol: Arc::from("tcp"),
        found: !hits.is_empty(),
        channels: hits.to_vec(),
    };
    respond(out, Command::SearchResponse, |writer| response.write(writer));
}

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// From a client, perhaps to this host alone.
    Direct,
    /// By the group, from another server of this host.
    Forwarded,
}

/// The thread that is found. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Finder {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

impl Finder {
    pub(super) fn start(service: Arc<Service>, discovery: Discovery) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for address in &discovery.listen {
            let socket = open(*address).map_err(|error| {
                let what = format!("cannot receive searches on {address}: {error}");
                io::Error::new(error.kind(), what)
            })?;
            sockets.push((socket, Way::Direct));
        }
        let mut addresses = Vec::new();
        for (socket, _) in &sockets {
            addresses.push(socket.local_addr()?);
        }
        // A host without multicast has to do without forwarding.
        let forward = addresses.first().and_then(|first| group(first.port()).ok());
        let forwarder = forward.map(|(socket, sender)| {
            let port = socket.local_addr().map_or(0, |address| address.port());
            sockets.push((socket, Way::Forwarded));
            (sender, SocketAddr::from((GROUP, port)))
        });
        let (stop, stopped) = UnixStream::pair()?;
        let poller = Poller::new()?;
        for (number, (socket, _)) in sockets.iter().enumerate() {
            poller.add(socket, number as u64, Interest::Read)?;
        }
        poller.add(&stopped, sockets.len() as u64, Interest::Read)?;
        let mut searcher = Searcher { service, discovery, sockets, forwarder };
        let thread = std::thread::Builder::new()
            .name("records-search".to_owned())
            .spawn(move || searcher.run(poller, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), addresses })
    }

    /// Where searches are received.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        // Its other end then has something to read.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported when it happened.
            let _ = thread.join();
        }
    }
}

/// A socket that shares its address with those of other servers.
fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    let socket = UdpSocket::from(socket);
    socket.set_broadcast(true)?;
    Ok(socket)
}

/// A socket that hears the group, and one that speaks to it.
fn group(port: u16) -> io::Result<(UdpSocket, UdpSocket)> {
    let hears = open((GROUP, port).into())?;
    hears.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
    let speaks = open((Ipv4Addr::LOCALHOST, 0).into())?;
    sockopt::set_ip_multicast_if(&speaks, &Ipv4Addr::LOCALHOST)?;
    speaks.set_multicast_loop_v4(true)?;
    speaks.set_multicast_ttl_v4(1)?;
    Ok((hears, speaks))
}

struct Searcher {
    service: Arc<Service>,
    discovery: Discovery,
    sockets: Vec<(UdpSocket, Way)>,
    /// What speaks to the group, and where the group is.
    forwarder: Option<(UdpSocket, SocketAddr)>,
}

impl Searcher {
    fn run(&mut self, mut poller: Poller, stopped: &UnixStream) {
        let started = Instant::now();
        let (mut beacon_at, mut sequence) = (started, 0);
        let mut buffer = vec![0; LARGEST_BYTES];
        loop {
            let wait = beacon_at.saturating_duration_since(Instant::now());
            let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            let is_silent = self.discovery.beacons.is_empty();
            let Ok(events) = poller.wait((!is_silent).then_some(wait_ns)) else { return };
            for index in 0..events {
                let number = poller.event(index).token as usize;
                if number >= self.sockets.len() {
                    let _ = stopped;
                    return;
                }
                self.receive(number, &mut buffer);
            }
            if !is_silent && Instant::now() >= beacon_at {
                self.send_beacons(sequence);
                sequence = sequence.wrapping_add(1);
                let is_young = started.elapsed() < FIRST_BEACONS.1;
                beacon_at = Instant::now() + if is_young { FIRST_BEACONS.0 } else { LATER_BEACONS };
            }
        }
    }

    fn receive(&self, number: usize, buffer: &mut [u8]) {
        let (socket, way) = &self.sockets[number];
        for _ in 0..MOST_RECEIVED {
            // An error is about one datagram, such as a reply that has not arrived, or says that
            // there are no more.
            let Ok((len, from)) = socket.recv_from(buffer) else { return };
            let forwarder =
                self.forwarder.as_ref().and_then(|(socket, _)| socket.local_addr().ok());
            if self.discovery.ignore.contains(&from.ip()) || Some(from) == forwarder {
                continue;
            }
            self.answer(socket, *way, from, &buffer[..len]);
        }
    }

    /// Answers the searches of one datagram, which may hold several messages.
    fn answer(&self, socket: &UdpSocket, way: Way, from: SocketAddr, mut datagram: &[u8]) {
        let mut tagged = false;
        while let Some(bytes) = datagram.first_chunk::<HEADER_BYTES>() {
            let Ok(header) = Header::read(bytes) else { return };
            let rest = &datagram[HEADER_BYTES..];
            let is_plain = !header.is_control && header.segment == Segment::Whole;
            let Some(body) = rest.get(..header.size as usize).filter(|_| is_plain) else { return };
            datagram = &rest[header.size as usize..];
            let mut reader = Reader::new(body, header.order);
            match header.command() {
                Command::OriginTag => {
                    OriginTag::read(&mut reader);
                    tagged = way == Way::Forwarded && reader.is_good();
                }
                Command::Search => {
                    let search = Search::read(&mut reader);
                    if reader.end().is_ok() && (way == Way::Direct || tagged) {
                        self.answer_one(socket, way, from, search);
                    }
                }
                _ => {}
            }
        }
    }

    fn answer_one(&self, socket: &UdpSocket, way: Way, from: SocketAddr, mut search: Search) {
        let stated = search.reply_to;
        let is_stated = !stated.ip().is_unspecified();
        if way == Way::Forwarded && !is_stated {
            return;
        }
        let ip = if is_stated { stated.ip() } else { from.ip() };
        let port = if stated.port() != 0 { stated.port() } else { from.port() };
        let to = SocketAddr::new(ip, port);
        let hits = found(&self.service, &search);
        // Sockets of the group can't be sent from.
        let socket = if way == Way::Direct { socket } else { &self.sockets[0].0 };
        let mut reply = Vec::new();
        let server = self.service.server_near(socket.local_addr().ok().map(|at| at.ip()));
        answer_search(&self.service, &search, &hits, Some(server), &mut reply);
        if !reply.is_empty() {
            // What the network doesn't take is lost, as any datagram may be: clients ask again.
            let _ = socket.send_to(&reply, to);
        }
        if way == Way::Direct && search.is_unicast {
            search.is_unicast = false;
            search.reply_to = to;
            self.forward(socket, &search);
        }
    }

    /// Tells the other servers of this host of a search that only this one has received.
    fn forward(&self, socket: &UdpSocket, search: &Search) {
        let Some((speaks, group)) = &self.forwarder else { return };
        let at = socket.local_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |address| address.ip());
        let mut bytes = Vec::new();
        let order = Order::Little;
        message(&mut bytes, Sender::Client, order, Command::OriginTag, |writer| {
            OriginTag(at).write(writer);
        });
        message(&mut bytes, Sender::Client, order, Command::Search, |writer| search.write(writer));
        let _ = speaks.send_to(&bytes, group);
    }

    fn send_beacons(&self, sequence: u8) {
        let beacon = Beacon {
            guid: self.service.guid,
            sequence,
            changes: self.service.changes(),
            server: self.service.server_near(None),
            protocol: Arc::from("tcp"),
        };
        let mut bytes = Vec::new();
        respond(&mut bytes, Command::Beacon, |writer| beacon.write(writer));
        for to in &self.discovery.beacons {
            if let Some((socket, _)) = self.sockets.first() {
                let _ = socket.send_to(&bytes, to);
            }
        }
    }
}
