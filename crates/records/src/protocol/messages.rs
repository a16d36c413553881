//! The payloads of messages: `Protocol-Messages.md`, in the order of that page.
//!
//! An operation's message is read in two steps, as what follows its head depends on the operation
//! that it names: the head here, and then values with [`Reader::changed`], [`Reader::item`] and
//! their like.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::{Item, MAX_NAME_BYTES, Reader, Registry, Severity, Sink, Status, Type, Writer};

/// The bits of an operation's subcommand.
pub mod subcommand {
    /// Begins an operation.
    pub const INIT: u8 = 0x08;
    /// Ends it afterwards.
    pub const DESTROY: u8 = 0x10;
    /// Of a put: reads. Of a get it may be set or not.
    pub const GET: u8 = 0x40;
    /// Of a put-get: reads what would be written.
    pub const GET_PUT: u8 = 0x80;
    /// Of a monitor: starts, where [`START`] is set, or stops it.
    pub const CONTROL: u8 = 0x04;
    /// Of a monitor, beside [`CONTROL`].
    pub const START: u8 = 0x40;
    /// Of a monitor: the client has room for more.
    pub const ACKNOWLEDGE: u8 = 0x80;
}

/// A server's name for itself, anew at each start.
pub type Guid = [u8; 12];

/// A server that is there (`CMD_BEACON`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Who it is.
    pub guid: Guid,
    /// Counts the beacons.
    pub sequence: u8,
    /// Counts the times that its channels have changed.
    pub changes: u16,
    /// Where it is reached; an unspecified address is the sender's.
    pub server: SocketAddr,
    /// How it is reached: `tcp`.
    pub protocol: Arc<str>,
}

impl Beacon {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.raw(&self.guid);
        writer.u8(0);
        writer.u8(self.sequence);
        writer.u16(self.changes);
        write_place(writer, self.server);
        writer.text(&self.protocol);
        writer.kind(None);
    }

    /// Reads it; the state of the server that may follow is of no use.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let guid = reader.guid();
        reader.u8();
        let (sequence, changes) = (reader.u8(), reader.u16());
        let server = read_place(reader);
        Self { guid, sequence, changes, server, protocol: reader.short_text(MAX_NAME_BYTES) }
    }
}

/// What a server offers to a new client (`CMD_CONNECTION_VALIDATION` from the server).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The size of its receive buffer; unused by peers.
    pub buffer_bytes: u32,
    /// How many types its registry holds; unused by peers.
    pub registry_size: u16,
    /// How a client may introduce itself, the best way last.
    pub methods: Vec<Arc<str>>,
}

impl Offer {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.buffer_bytes);
        writer.u16(self.registry_size);
        writer.size(self.methods.len());
        self.methods.iter().for_each(|method| writer.text(method));
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (buffer_bytes, registry_size) = (reader.u32(), reader.u16());
        Self { buffer_bytes, registry_size, methods: read_texts(reader) }
    }
}

/// How a client introduces itself (`CMD_CONNECTION_VALIDATION` from the client).
#[derive(Clone, Debug, PartialEq)]
pub struct Introduction {
    /// The size of its receive buffer; unused by peers.
    pub buffer_bytes: u32,
    /// How many types its registry holds; unused by peers.
    pub registry_size: u16,
    /// Quality of service; unused by peers.
    pub quality: u16,
    /// Which way it chose: `anonymous`, or `ca`, where the item has `user` and `host`.
    pub method: Arc<str>,
    /// Its identity, unverified.
    pub item: Option<Item>,
}

impl Introduction {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.buffer_bytes);
        writer.u16(self.registry_size);
        writer.u16(self.quality);
        writer.text(&self.method);
        writer.item(self.item.as_ref());
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>, known: &mut Registry) -> Self {
        let (buffer_bytes, registry_size, quality) = (reader.u32(), reader.u16(), reader.u16());
        let method = reader.short_text(MAX_NAME_BYTES);
        // Old clients end here.
        let item = if reader.left() == 0 { None } else { reader.item(known) };
        Self { buffer_bytes, registry_size, quality, method, item }
    }
}

/// Who has these channels? (`CMD_SEARCH`)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Counts the searches of a client.
    pub sequence: u32,
    /// Whether servers answer that have none of the channels.
    pub must_reply: bool,
    /// Whether it was sent to this host alone.
    pub is_unicast: bool,
    /// Where to answer; an unspecified address is the sender's.
    pub reply_to: SocketAddr,
    /// How the client can reach servers; any way, when there is none.
    pub protocols: Vec<Arc<str>>,
    /// The channels, each with the client's number for it.
    pub channels: Vec<(u32, Arc<str>)>,
}

impl Search {
    const MUST_REPLY: u8 = 0x01;
    const UNICAST: u8 = 0x80;

    /// Whether the client can use TCP.
    pub fn allows_tcp(&self) -> bool {
        self.protocols.is_empty() || self.protocols.iter().any(|name| &**name == "tcp")
    }

    /// Appends it.
    ///
    /// # Panics
    /// With more than 65,535 channels.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.sequence);
        let must_reply = if self.must_reply { Self::MUST_REPLY } else { 0 };
        writer.u8(must_reply | if self.is_unicast { Self::UNICAST } else { 0 });
        writer.raw(&[0; 3]);
        write_place(writer, self.reply_to);
        writer.size(self.protocols.len());
        self.protocols.iter().for_each(|name| writer.text(name));
        writer.u16(u16::try_from(self.channels.len()).expect("channels for one message"));
        for (number, name) in &self.channels {
            writer.u32(*number);
            writer.text(name);
        }
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (sequence, flags) = (reader.u32(), reader.u8());
        reader.take(3);
        let reply_to = read_place(reader);
        let protocols = read_texts(reader);
        let count = reader.u16();
        let mut channels = Vec::new();
        for _ in 0..count {
            let channel = (reader.u32(), reader.short_text(MAX_NAME_BYTES));
            if !reader.is_good() {
                break;
            }
            channels.push(channel);
        }
        let (must_reply, is_unicast) = (flags & Self::MUST_REPLY != 0, flags & Self::UNICAST != 0);
        Self { sequence, must_reply, is_unicast, reply_to, protocols, channels }
    }
}

/// I have these channels (`CMD_SEARCH_RESPONSE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResponse {
    /// Who has them.
    pub guid: Guid,
    /// The sequence of the search.
    pub sequence: u32,
    /// Where they are; an unspecified address is the sender's.
    pub server: SocketAddr,
    /// How they are reached: `tcp`.
    pub protocol: Arc<str>,
    /// Whether they are there.
    pub found: bool,
    /// The client's numbers of the channels.
    pub channels: Vec<u32>,
}

impl SearchResponse {
    /// Appends it.
    ///
    /// # Panics
    /// With more than 65,535 channels.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.raw(&self.guid);
        writer.u32(self.sequence);
        write_place(writer, self.server);
        writer.text(&self.protocol);
        writer.u8(self.found.into());
        writer.u16(u16::try_from(self.channels.len()).expect("channels of one message"));
        self.channels.iter().for_each(|number| writer.u32(*number));
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (guid, sequence) = (reader.guid(), reader.u32());
        let server = read_place(reader);
        let protocol = reader.short_text(MAX_NAME_BYTES);
        let found = reader.u8() != 0;
        let count = usize::from(reader.u16());
        let count = if count * 4 > reader.left() { 0 } else { count };
        let channels = (0..count).map(|_| reader.u32()).collect();
        Self { guid, sequence, server, protocol, found, channels }
    }
}

/// Where a search that was forwarded had come in (`CMD_ORIGIN_TAG`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginTag(pub IpAddr);

impl OriginTag {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.address(self.0);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self(reader.address())
    }
}

/// Opens channels (`CMD_CREATE_CHANNEL` from the client): each with the client's number for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateChannels(pub Vec<(u32, Arc<str>)>);

impl CreateChannels {
    /// Appends it.
    ///
    /// # Panics
    /// With more than 65,535 channels; peers understand one.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u16(u16::try_from(self.0.len()).expect("channels for one message"));
        for (client_id, name) in &self.0 {
            writer.u32(*client_id);
            writer.text(name);
        }
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let count = reader.u16();
        let mut all = Vec::new();
        for _ in 0..count {
            let channel = (reader.u32(), reader.short_text(MAX_NAME_BYTES));
            if !reader.is_good() {
                break;
            }
            all.push(channel);
        }
        Self(all)
    }
}

/// What has become of a channel (`CMD_CREATE_CHANNEL` from the server).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelCreated {
    /// The client's number for it.
    pub client_id: u32,
    /// The server's.
    pub server_id: u32,
    /// Whether there is such a channel.
    pub status: Status,
}

impl ChannelCreated {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.client_id);
        writer.u32(self.server_id);
        self.status.write(writer);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (client_id, server_id) = (reader.u32(), reader.u32());
        Self { client_id, server_id, status: Status::read(reader) }
    }
}

/// Closes a channel, or confirms that it is closed (`CMD_DESTROY_CHANNEL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestroyChannel {
    /// The server's number for it.
    pub server_id: u32,
    /// The client's.
    pub client_id: u32,
}

impl DestroyChannel {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.server_id);
        writer.u32(self.client_id);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { server_id: reader.u32(), client_id: reader.u32() }
    }
}

/// How the message of a client about an operation begins: get, put, put-get, monitor, RPC,
/// process. After an [`INIT`](subcommand::INIT) follows the request, as an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The server's number of the channel.
    pub channel: u32,
    /// The client's number of the operation.
    pub request: u32,
    /// What is to be done.
    pub subcommand: u8,
}

impl RequestHead {
    /// Appends it.
    #[inline]
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.channel);
        writer.u32(self.request);
        writer.u8(self.subcommand);
    }

    /// Reads it.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (channel, request) = (reader.u32(), reader.u32());
        Self { channel, request, subcommand: reader.u8() }
    }

    /// Whether `bits` of the subcommand are all set.
    #[inline]
    pub fn has(&self, bits: u8) -> bool {
        self.subcommand & bits == bits
    }
}

/// How the message of a server about an operation begins. A [`Status`] follows, but for the
/// updates of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The client's number of the operation.
    pub request: u32,
    /// What was done.
    pub subcommand: u8,
}

impl ResponseHead {
    /// Appends it.
    #[inline]
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.request);
        writer.u8(self.subcommand);
    }

    /// Reads it.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { request: reader.u32(), subcommand: reader.u8() }
    }

    /// Whether `bits` of the subcommand are all set.
    #[inline]
    pub fn has(&self, bits: u8) -> bool {
        self.subcommand & bits == bits
    }
}

/// An operation of a channel, to be forgotten (`CMD_DESTROY_REQUEST`) or stopped
/// (`CMD_CANCEL_REQUEST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The server's number of the channel.
    pub channel: u32,
    /// The client's number of the operation.
    pub request: u32,
}

impl Named {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.channel);
        writer.u32(self.request);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self { channel: reader.u32(), request: reader.u32() }
    }
}

/// What is the type of this field? (`CMD_GET_FIELD` from the client)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetField {
    /// The server's number of the channel.
    pub channel: u32,
    /// The client's number of the question.
    pub request: u32,
    /// Which field; empty for the whole record.
    pub path: Arc<str>,
}

impl GetField {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.channel);
        writer.u32(self.request);
        writer.text(&self.path);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (channel, request) = (reader.u32(), reader.u32());
        Self { channel, request, path: reader.text() }
    }
}

/// The type of a field (`CMD_GET_FIELD` from the server).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// The client's number of the question.
    pub request: u32,
    /// Whether there is such a field.
    pub status: Status,
    /// Its type, if there is.
    pub kind: Option<Type>,
}

impl FieldType {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.request);
        self.status.write(writer);
        if self.status.is_success() {
            writer.kind(self.kind.as_ref());
        }
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>, known: &mut Registry) -> Self {
        let (request, status) = (reader.u32(), Status::read(reader));
        let kind = if status.is_success() { reader.kind(known) } else { None };
        Self { request, status, kind }
    }
}

/// A text for a human about an operation (`CMD_MESSAGE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The client's number of the operation.
    pub request: u32,
    /// How bad it is.
    pub severity: Severity,
    /// The text.
    pub text: Arc<str>,
}

impl Text {
    /// Appends it.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        writer.u32(self.request);
        writer.u8(self.severity.code());
        writer.text(&self.text);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let (request, severity) = (reader.u32(), Severity::of_code(reader.u8()));
        Self { request, severity, text: reader.text() }
    }
}

fn write_place<S: Sink>(writer: &mut Writer<'_, S>, place: SocketAddr) {
    writer.address(place.ip());
    writer.u16(place.port());
}

fn read_place(reader: &mut Reader<'_>) -> SocketAddr {
    SocketAddr::new(reader.address(), reader.u16())
}

fn read_texts(reader: &mut Reader<'_>) -> Vec<Arc<str>> {
    let count = reader.count(1);
    let mut all = Vec::new();
    while all.len() < count && reader.is_good() {
        all.push(reader.short_text(MAX_NAME_BYTES));
    }
    all
}
