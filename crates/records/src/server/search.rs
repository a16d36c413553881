//! Discovery: searches and beacons over datagrams, on the first thread of the server's loop, and
//! what searches over TCP share with them. Control plane.
//!
//! Several servers of a host receive what is sent to all; what is sent to this host alone reaches
//! only one of them, which forwards it to a group that all have joined on the loopback interface
//! (`Protocol-Messages.md`, `CMD_ORIGIN_TAG`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wire::clock::SECOND_NS;
use wire::{
    Address, Batch, DatagramListener, DatagramOptions, Datagrams, Ns, Replies, Wake, Waker,
};

use super::channel::SERVICE_CHANNEL;
use super::respond::respond;
use super::service::Service;
use crate::protocol::messages::{Beacon, OriginTag, Search, SearchResponse};
use crate::protocol::{
    Command, HEADER_BYTES, Header, Order, Reader, Segment, Sender, Sink, message,
};

/// The group by which servers of one host tell each other of searches.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 128);

/// The interval between beacons at first, how long it holds, and the interval after that
/// (`CMD_BEACON`).
const FIRST_BEACONS_NS: Ns = 15 * SECOND_NS;
const FIRST_LAST_NS: Ns = 300 * SECOND_NS;
const LATER_BEACONS_NS: Ns = 180 * SECOND_NS;

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

/// The role of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It receives from clients, perhaps sent to this host alone.
    Direct,
    /// It receives what other servers of this host forward to the group.
    Group,
    /// It sends to the group.
    Forwarding,
}

/// The sockets of discovery, bound, with the role of each.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    sockets: Vec<DatagramListener>,
    roles: Vec<Role>,
}

impl Sockets {
    /// Binds them. A host without multicast has to do without forwarding.
    pub(super) fn bind(listen: &[SocketAddr]) -> io::Result<Self> {
        let mut bound = Self::default();
        let shared = DatagramOptions {
            shares_address: true,
            may_broadcast: true,
            ..DatagramOptions::default()
        };
        for address in listen {
            let address = Address::Internet(*address);
            bound.sockets.push(DatagramListener::bind_with(&address, 1, &shared)?);
            bound.roles.push(Role::Direct);
        }
        let group = bound.addresses().first().and_then(|first| {
            let of = |ip, port| Address::Internet(SocketAddr::from((ip, port)));
            let joined =
                DatagramOptions { groups: vec![(GROUP, Ipv4Addr::LOCALHOST)], ..shared.clone() };
            let sends = DatagramOptions {
                multicast_interface: Some(Ipv4Addr::LOCALHOST),
                ..shared.clone()
            };
            let group = DatagramListener::bind_with(&of(GROUP, first.port()), 1, &joined).ok()?;
            let sender = DatagramListener::bind_with(&of(Ipv4Addr::LOCALHOST, 0), 1, &sends);
            Some([(group, Role::Group), (sender.ok()?, Role::Forwarding)])
        });
        for (socket, role) in group.into_iter().flatten() {
            bound.sockets.push(socket);
            bound.roles.push(role);
        }
        Ok(bound)
    }

    /// Where searches are received.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.with_role(Role::Direct).map(|(_, address)| address).collect()
    }

    /// The sockets with a role: their numbers and addresses.
    fn with_role(&self, role: Role) -> impl Iterator<Item = (usize, SocketAddr)> {
        self.sockets.iter().zip(&self.roles).enumerate().filter_map(
            move |(number, (socket, own))| match socket.address() {
                Address::Internet(address) if *own == role => Some((number, *address)),
                _ => None,
            },
        )
    }

    /// The protocol over these sockets, and the sockets.
    pub(super) fn serve(
        self,
        service: Arc<Service>,
        discovery: Discovery,
    ) -> (Vec<DatagramListener>, Searcher) {
        let group = self.with_role(Role::Group).next();
        let forwarding = self.with_role(Role::Forwarding).next();
        let searcher = Searcher {
            service,
            discovery,
            direct: self.addresses(),
            forwarder: group.zip(forwarding).map(|((_, group), (socket, own))| Forwarder {
                socket,
                own,
                group,
            }),
            started_ns: 0,
            beacon_at_ns: None,
            sequence: 0,
        };
        (self.sockets, searcher)
    }
}

/// What forwards searches to the other servers of this host.
#[derive(Clone, Copy, Debug)]
struct Forwarder {
    /// The number of the socket that sends to the group, and its address.
    socket: usize,
    own: SocketAddr,
    group: SocketAddr,
}

/// The protocol of discovery. Its first sockets are the direct ones.
#[derive(Clone, Debug)]
pub(super) struct Searcher {
    service: Arc<Service>,
    discovery: Discovery,
    /// The addresses of the direct sockets.
    direct: Vec<SocketAddr>,
    forwarder: Option<Forwarder>,
    started_ns: Ns,
    beacon_at_ns: Option<Ns>,
    sequence: u8,
}

impl Datagrams for Searcher {
    fn opened(&mut self, now: Ns, _: &Waker, _: &mut Replies) {
        self.started_ns = now;
        // The first beacon is sent at once.
        self.beacon_at_ns = (!self.discovery.beacons.is_empty()).then_some(now);
    }

    fn datagrams(&mut self, _: Ns, batch: &Batch, replies: &mut Replies) {
        for (from, datagram) in batch.iter() {
            let Address::Internet(from) = from else { continue };
            let is_own = self.forwarder.is_some_and(|forwarder| forwarder.own == *from);
            if !is_own && !self.discovery.ignore.contains(&from.ip()) {
                self.answer(batch.socket(), *from, datagram, replies);
            }
        }
    }

    fn resume(&mut self, now: Ns, _: Wake, out: &mut Replies) {
        if self.beacon_at_ns.is_some_and(|at_ns| at_ns <= now) {
            self.send_beacons(out);
            let is_young = now.saturating_sub(self.started_ns) < FIRST_LAST_NS;
            let interval_ns = if is_young { FIRST_BEACONS_NS } else { LATER_BEACONS_NS };
            self.beacon_at_ns = Some(now + interval_ns);
        }
    }

    fn deadline(&self) -> Option<Ns> {
        self.beacon_at_ns
    }
}

impl Searcher {
    /// Answers the searches of one datagram, which may hold several messages.
    fn answer(&self, socket: usize, from: SocketAddr, mut datagram: &[u8], replies: &mut Replies) {
        let is_direct = socket < self.direct.len();
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
                    tagged = !is_direct && reader.is_good();
                }
                Command::Search => {
                    let search = Search::read(&mut reader);
                    if reader.end().is_ok() && (is_direct || tagged) {
                        self.answer_one(socket, from, search, replies);
                    }
                }
                _ => {}
            }
        }
    }

    fn answer_one(
        &self,
        socket: usize,
        from: SocketAddr,
        mut search: Search,
        replies: &mut Replies,
    ) {
        let is_direct = socket < self.direct.len();
        let stated = search.reply_to;
        let is_stated = !stated.ip().is_unspecified();
        if !is_direct && !is_stated {
            return;
        }
        let ip = if is_stated { stated.ip() } else { from.ip() };
        let port = if stated.port() != 0 { stated.port() } else { from.port() };
        let to = SocketAddr::new(ip, port);
        let hits = found(&self.service, &search);
        // A socket bound to the group's address can't send: the first direct one does.
        let socket = if is_direct { socket } else { 0 };
        let own = self.direct.get(socket).map(SocketAddr::ip);
        let mut reply = Vec::new();
        let server = self.service.server_near(own);
        answer_search(&self.service, &search, &hits, Some(server), &mut reply);
        if !reply.is_empty() {
            // A datagram that the network doesn't take is lost: clients search again.
            replies.push_by(socket, Address::Internet(to), &reply);
        }
        if is_direct && search.is_unicast {
            search.is_unicast = false;
            search.reply_to = to;
            self.forward(own, &search, replies);
        }
    }

    /// Forwards a search that only this server has received to the others of this host.
    fn forward(&self, own: Option<IpAddr>, search: &Search, replies: &mut Replies) {
        let Some(Forwarder { socket, group, .. }) = self.forwarder else { return };
        let at = own.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let mut bytes = Vec::new();
        let order = Order::Little;
        message(&mut bytes, Sender::Client, order, Command::OriginTag, |writer| {
            OriginTag(at).write(writer);
        });
        message(&mut bytes, Sender::Client, order, Command::Search, |writer| search.write(writer));
        replies.push_by(socket, Address::Internet(group), &bytes);
    }

    fn send_beacons(&mut self, out: &mut Replies) {
        let beacon = Beacon {
            guid: self.service.guid,
            sequence: self.sequence,
            changes: self.service.changes(),
            server: self.service.server_near(None),
            protocol: Arc::from("tcp"),
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        respond(&mut bytes, Command::Beacon, |writer| beacon.write(writer));
        for to in &self.discovery.beacons {
            out.push_by(0, Address::Internet(*to), &bytes);
        }
    }
}
