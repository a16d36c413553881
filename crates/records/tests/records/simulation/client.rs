//! A simulated client of records: introduces itself, opens channels, gets, puts and monitors, and
//! checks what comes.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use records::protocol::messages::{
    ChannelCreated, CreateChannels, DestroyChannel, Introduction, Named, RequestHead, ResponseHead,
    subcommand,
};
use records::protocol::{
    Bits, Command, Frame, Frames, Order, Pool, Reader, Registry, Request, Sender, Status, Type,
    Value, Writer, message, zeros,
};
use wire::simulation::{Client, End, Next, Random};
use wire::{Input, Ns};

use super::world::{KINDS, Kind, World};

/// An answer that is due, in the order of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Due {
    Validated,
    Channel,
    Closed {
        client_id: u32,
    },
    Echo(Vec<u8>),
    /// An operation begins.
    Begin {
        request: u32,
    },
    Get {
        request: u32,
        sent_ns: Ns,
        at_least: u64,
    },
    Put {
        request: u32,
        write: u64,
    },
}

#[derive(Debug)]
struct Channel {
    kind: Kind,
    server_id: Option<u32>,
    /// Its end was requested by the client.
    is_closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Get,
    Put,
    /// With the updates that the client has room for, if it counts them.
    Monitor {
        room: Option<u64>,
    },
}

/// An operation that has begun, or is beginning.
#[derive(Debug)]
struct Operation {
    channel: u32,
    what: What,
    /// None until the server has described it.
    kind: Option<Type>,
    nodes: Vec<Value>,
    /// The last version that an update has brought.
    seen: u64,
    is_running: bool,
    /// The version that has to come before the client may end.
    awaited: u64,
}

/// One connection.
pub(super) struct RecordsClient {
    world: Rc<RefCell<World>>,
    number: u64,
    frames: Frames,
    known: Registry,
    has_introduced: bool,
    is_validated: bool,
    channels: BTreeMap<u32, Channel>,
    operations: BTreeMap<u32, Operation>,
    due: VecDeque<Due>,
    next_number: u32,
    left: u32,
    depth: usize,
    is_finishing: bool,
}

impl RecordsClient {
    pub(super) fn new(world: &Rc<RefCell<World>>, random: &mut Random) -> Self {
        let number = world.borrow().next_client;
        world.borrow_mut().next_client += 1;
        Self {
            world: Rc::clone(world),
            number,
            frames: Frames::new(Sender::Server, 1 << 24, Pool::new(0)),
            known: Registry::default(),
            has_introduced: false,
            is_validated: false,
            channels: BTreeMap::new(),
            operations: BTreeMap::new(),
            due: VecDeque::new(),
            next_number: 1,
            left: random.below(80) as u32,
            depth: random.up_to(20),
            is_finishing: false,
        }
    }

    fn introduce(&mut self, out: &mut Vec<u8>) {
        self.has_introduced = true;
        let introduction = Introduction {
            buffer_bytes: 0,
            registry_size: 0,
            quality: 0,
            method: "anonymous".into(),
            item: None,
        };
        write(out, Command::Validation, |writer| introduction.write(writer));
        self.due.push_back(Due::Validated);
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    /// The channels that may be used, with their numbers at the server.
    fn open(&self) -> Vec<(u32, u32)> {
        let open = self.channels.iter().filter(|(_, channel)| !channel.is_closing);
        open.filter_map(|(id, channel)| Some((*id, channel.server_id?))).collect()
    }

    fn act(&mut self, now: Ns, random: &mut Random, out: &mut Vec<u8>) {
        let open = self.open();
        match random.below(16) {
            _ if self.channels.is_empty() => self.create(random, out),
            0 => self.create(random, out),
            1 => {
                let bytes = vec![random.bits() as u8; random.up_to(100)];
                write(out, Command::Echo, |writer| writer.raw(&bytes));
                self.due.push_back(Due::Echo(bytes));
            }
            _ if open.is_empty() => {}
            2 if random.chance(300) => self.close_channel(open[random.index(open.len())], out),
            2..7 => self.begin(open[random.index(open.len())], random, out),
            7 => self.forget(random, out),
            _ => self.go_on(now, random, out),
        }
    }

    fn create(&mut self, random: &mut Random, out: &mut Vec<u8>) {
        let (id, kind) = (self.number(), KINDS[random.index(KINDS.len())]);
        let channels = CreateChannels(vec![(id, kind.name().into())]);
        write(out, Command::CreateChannel, |writer| channels.write(writer));
        self.channels.insert(id, Channel { kind, server_id: None, is_closing: false });
        self.due.push_back(Due::Channel);
    }

    fn close_channel(&mut self, (client_id, server_id): (u32, u32), out: &mut Vec<u8>) {
        let named = DestroyChannel { server_id, client_id };
        write(out, Command::DestroyChannel, |writer| named.write(writer));
        self.channels.get_mut(&client_id).expect("it is open").is_closing = true;
        self.due.push_back(Due::Closed { client_id });
    }

    fn begin(&mut self, (id, server_id): (u32, u32), random: &mut Random, out: &mut Vec<u8>) {
        let kind = self.channels[&id].kind;
        let request = self.number();
        let (what, text) = match random.below(4) {
            0 => (What::Get, "field()".to_owned()),
            1 if matches!(kind, Kind::Puts(_)) => (What::Put, "field(value)".to_owned()),
            2 => {
                let room = 1 + random.below(6);
                let text = format!("record[pipeline=true,queueSize={}]field()", 2 + room);
                (What::Monitor { room: Some(room) }, text)
            }
            _ => (What::Monitor { room: None }, "field(value)".to_owned()),
        };
        let room = if let What::Monitor { room } = what { room } else { None };
        let acknowledges = if room.is_some() { subcommand::ACKNOWLEDGE } else { 0 };
        let subcommand = subcommand::INIT | acknowledges;
        let item = Request::parse(&text).expect("a request").item();
        write(out, what.command(), |writer| {
            RequestHead { channel: server_id, request, subcommand }.write(writer);
            writer.item(Some(&item));
            room.into_iter().for_each(|room| writer.u32(room as u32));
        });
        let operation = Operation {
            channel: id,
            what,
            kind: None,
            nodes: Vec::new(),
            seen: 0,
            is_running: false,
            awaited: 0,
        };
        self.operations.insert(request, operation);
        self.due.push_back(Due::Begin { request });
    }

    /// One of the operations that have begun, on a channel that is open.
    fn begun(&self, random: &mut Random) -> Option<(u32, u32)> {
        let begun = self.operations.iter().filter_map(|(request, operation)| {
            let channel = self.channels.get(&operation.channel)?;
            let is_usable = operation.kind.is_some() && !channel.is_closing;
            is_usable.then_some((*request, channel.server_id?))
        });
        let begun: Vec<_> = begun.collect();
        (!begun.is_empty()).then(|| begun[random.index(begun.len())])
    }

    /// Has the server forget an operation.
    fn forget(&mut self, random: &mut Random, out: &mut Vec<u8>) {
        let Some((request, channel)) = self.begun(random) else { return };
        // Answers to what was asked of it are still due.
        let is_of = |due: &Due| match due {
            Due::Get { request: of, .. } | Due::Put { request: of, .. } => *of == request,
            _ => false,
        };
        if !self.due.iter().any(is_of) {
            let named = Named { channel, request };
            write(out, Command::DestroyRequest, |writer| named.write(writer));
            self.operations.remove(&request);
        }
    }

    fn go_on(&mut self, now: Ns, random: &mut Random, out: &mut Vec<u8>) {
        let Some((request, channel)) = self.begun(random) else { return };
        let operation = self.operations.get_mut(&request).expect("it has begun");
        let kind = self.channels[&operation.channel].kind;
        let head = |subcommand| RequestHead { channel, request, subcommand };
        let mut world = self.world.borrow_mut();
        match operation.what {
            What::Get => {
                write(out, Command::Get, |writer| head(0).write(writer));
                let at_least = world.current(kind);
                self.due.push_back(Due::Get { request, sent_ns: now, at_least });
            }
            What::Put => {
                let Kind::Puts(register) = kind else { return };
                let version = world.next_write;
                world.next_write += 1;
                world.registers[register].begin(version, now);
                let kind_of = operation.kind.as_ref().expect("it has begun");
                let mut nodes = zeros(kind_of);
                nodes[1] = kind.array(version);
                let fields: Bits = [1].into_iter().collect();
                write(out, Command::Put, |writer| {
                    head(0).write(writer);
                    writer.changed(kind_of, &fields, &nodes);
                });
                self.due.push_back(Due::Put { request, write: version });
            }
            What::Monitor { .. } => {
                operation.is_running = !operation.is_running || random.chance(900);
                let start = if operation.is_running { subcommand::START } else { 0 };
                let head = head(subcommand::CONTROL | start);
                write(out, Command::Monitor, |writer| head.write(writer));
            }
        }
    }

    /// Nothing more is sent but acknowledgements: each running monitor has to bring what its record
    /// holds now, or something newer.
    fn finish(&mut self) {
        self.is_finishing = true;
        let world = self.world.borrow();
        for operation in self.operations.values_mut() {
            let kind = self.channels.get(&operation.channel).map(|channel| channel.kind);
            if operation.is_running
                && let Some(kind @ Kind::Ticks(_)) = kind
            {
                operation.awaited = world.current(kind);
            }
        }
    }

    fn is_over(&self) -> bool {
        let awaits = |operation: &Operation| operation.seen < operation.awaited;
        self.is_finishing && self.due.is_empty() && !self.operations.values().any(awaits)
    }

    fn take(&mut self, now: Ns, (command, order, bytes): &Received) -> Result<(), String> {
        let reader = &mut Reader::new(bytes, *order);
        match command {
            Command::Validation if !self.has_introduced => {
                self.is_validated = true;
                Ok(())
            }
            Command::Get | Command::Put | Command::Monitor => {
                let head = ResponseHead::read(&mut Reader::new(bytes, *order));
                let is_beginning = head.has(subcommand::INIT);
                if is_beginning && !self.operations.contains_key(&head.request) {
                    // It has not begun, because its channel was closed before.
                    return Ok(());
                }
                match command {
                    Command::Monitor if !is_beginning => self.take_update(reader),
                    _ => self.take_answer(now, *command, reader),
                }
            }
            // A queue that is cut is reported; what is fatal closes the connection, too.
            Command::Message => Ok(()),
            Command::DestroyChannel => self.take_closed(reader),
            _ => self.take_answer(now, *command, reader),
        }
    }

    fn take_closed(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let closed = DestroyChannel::read(reader);
        let Some(channel) = self.channels.remove(&closed.client_id) else {
            return Err(format!("channel {} is closed, and was not open", closed.client_id));
        };
        let answered = Due::Closed { client_id: closed.client_id };
        if channel.kind != Kind::Fleeting && self.due.front() != Some(&answered) {
            return Err(format!("the channel to {} is closed", channel.kind.name()));
        }
        self.due.retain(|due| *due != answered);
        // Requests that were on their way are not answered any more.
        let gone = |request: &u32| {
            self.operations.get(request).is_none_or(|one| one.channel == closed.client_id)
        };
        self.due.retain(|due| match due {
            Due::Begin { request } | Due::Get { request, .. } | Due::Put { request, .. } => {
                !gone(request)
            }
            _ => true,
        });
        self.operations.retain(|_, operation| operation.channel != closed.client_id);
        Ok(())
    }

    fn take_answer(
        &mut self,
        now: Ns,
        command: Command,
        reader: &mut Reader<'_>,
    ) -> Result<(), String> {
        let Some(due) = self.due.pop_front() else {
            return Err(format!("{command:?} answers nothing"));
        };
        self.world.borrow_mut().answers += 1;
        match (command, &due) {
            (Command::Validated, Due::Validated) => is_ok(&Status::read(reader)),
            (Command::Echo, Due::Echo(bytes)) if reader.rest() == &bytes[..] => Ok(()),
            (Command::CreateChannel, Due::Channel) => {
                let created = ChannelCreated::read(reader);
                let Some(channel) = self.channels.get_mut(&created.client_id) else {
                    return Err(format!("no channel {} was asked for", created.client_id));
                };
                channel.server_id = Some(created.server_id);
                is_ok(&created.status)
            }
            (_, Due::Begin { request }) => self.take_beginning(command, *request, reader),
            (Command::Get, Due::Get { request, sent_ns, at_least }) => {
                let head = ResponseHead::read(reader);
                is_ok(&Status::read(reader))?;
                let version = self.take_value(*request, head, reader)?;
                let kind = self.kind(*request)?;
                let mut world = self.world.borrow_mut();
                match kind {
                    Kind::Puts(number) => world.registers[number].read(version, *sent_ns, now),
                    _ if (*at_least..=world.current(kind)).contains(&version) => Ok(()),
                    _ => Err(format!("version {version} of {}, after {at_least}", kind.name())),
                }
            }
            (Command::Put, Due::Put { request, write }) => {
                let head = ResponseHead::read(reader);
                is_ok(&Status::read(reader))?;
                let Kind::Puts(number) = self.kind(*request)? else { return Ok(()) };
                self.world.borrow_mut().registers[number].end(*write, now);
                same(head.request, *request)
            }
            _ => Err(format!("{command:?} comes before the answer to {due:?}")),
        }
    }

    fn kind(&self, request: u32) -> Result<Kind, String> {
        let operation = self.operations.get(&request);
        let channel = operation.and_then(|operation| self.channels.get(&operation.channel));
        channel.map(|channel| channel.kind).ok_or_else(|| format!("no operation {request}"))
    }

    fn take_beginning(
        &mut self,
        command: Command,
        request: u32,
        reader: &mut Reader<'_>,
    ) -> Result<(), String> {
        let head = ResponseHead::read(reader);
        same(head.request, request)?;
        let status = Status::read(reader);
        if !status.is_success() && self.kind(request)? == Kind::Fleeting {
            self.operations.remove(&request);
            return Ok(());
        }
        is_ok(&status)?;
        let kind = reader.kind(&mut self.known).ok_or("a beginning without a type")?;
        reader.end().map_err(|fault| fault.to_string())?;
        let operation = self.operations.get_mut(&request).ok_or("no such operation")?;
        if operation.what.command() != command {
            return Err(format!("{command:?} begins {:?}", operation.what));
        }
        operation.nodes = zeros(&kind);
        operation.kind = Some(kind);
        Ok(())
    }

    /// Reads the fields of an answer, and returns the version that the operation has now.
    fn take_value(
        &mut self,
        request: u32,
        head: ResponseHead,
        reader: &mut Reader<'_>,
    ) -> Result<u64, String> {
        same(head.request, request)?;
        let kind = self.kind(request)?;
        let operation = self.operations.get_mut(&request).expect("it has a kind");
        let described = operation.kind.as_ref().ok_or("it has not begun")?;
        reader.changed(described, &mut self.known, &mut operation.nodes);
        reader.end().map_err(|fault| fault.to_string())?;
        kind.version(&operation.nodes[1])
    }

    fn take_update(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        let head = ResponseHead::read(reader);
        let Some(operation) = self.operations.get_mut(&head.request) else {
            // It was forgotten meanwhile.
            return Ok(());
        };
        if let What::Monitor { room: Some(room) } = &mut operation.what {
            *room = room.checked_sub(1).ok_or("more updates than there is room for")?;
        }
        let version = self.take_value(head.request, head, reader)?;
        let kind = self.kind(head.request)?;
        let mut world = self.world.borrow_mut();
        world.updates += 1;
        let operation = self.operations.get_mut(&head.request).expect("it has a kind");
        let is_newer = version >= operation.seen && version <= world.current(kind);
        if matches!(kind, Kind::Ticks(_)) && !is_newer {
            let seen = operation.seen;
            return Err(format!("version {version} of {} comes after {seen}", kind.name()));
        }
        operation.seen = version;
        Ok(())
    }

    /// Tells the server of room for more updates.
    fn acknowledge(&mut self, random: &mut Random, out: &mut Vec<u8>) {
        for (request, operation) in &mut self.operations {
            let Some(channel) = self.channels.get(&operation.channel) else { continue };
            let (What::Monitor { room: Some(room) }, Some(server_id)) =
                (&mut operation.what, channel.server_id)
            else {
                continue;
            };
            if *room < 2 && operation.kind.is_some() && !channel.is_closing {
                let more = 1 + random.below(5);
                *room += more;
                let (request, subcommand) = (*request, subcommand::ACKNOWLEDGE);
                write(out, Command::Monitor, |writer| {
                    RequestHead { channel: server_id, request, subcommand }.write(writer);
                    writer.u32(more as u32);
                });
            }
        }
    }

    /// The next message of the input.
    fn next_message(&mut self, input: &mut Input) -> Result<Option<Received>, String> {
        loop {
            let found = self.frames.next(input.bytes()).map_err(|fault| fault.to_string())?;
            let (used, message) = match found {
                (used, Some(Frame::Message { command, order, body, .. })) => {
                    (used, Some((command, order, body.reader(order).rest().to_vec())))
                }
                (used, Some(Frame::Control(_))) => {
                    input.consume(used);
                    continue;
                }
                (used, None) => (used, None),
            };
            input.consume(used);
            if message.is_some() {
                return Ok(message);
            }
            match self.frames.place() {
                Some(place) if !place.is_empty() && !input.is_empty() => {
                    let count = place.len().min(input.len());
                    place[..count].copy_from_slice(&input.bytes()[..count]);
                    input.consume(count);
                    self.frames.placed(count);
                }
                _ if used == 0 => return Ok(None),
                _ => {}
            }
        }
    }
}

/// A message with its payload.
type Received = (Command, Order, Vec<u8>);

impl What {
    fn command(self) -> Command {
        match self {
            Self::Get => Command::Get,
            Self::Put => Command::Put,
            Self::Monitor { .. } => Command::Monitor,
        }
    }
}

fn write(out: &mut Vec<u8>, command: Command, body: impl FnOnce(&mut Writer<'_, Vec<u8>>)) {
    message(out, Sender::Client, Order::Little, command, body);
}

fn is_ok(status: &Status) -> Result<(), String> {
    if status.is_success() { Ok(()) } else { Err(format!("it is refused: {status:?}")) }
}

fn same(got: u32, expected: u32) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("answer {got} comes instead of {expected}")) }
}

impl Client for RecordsClient {
    fn send(&mut self, now: Ns, random: &mut Random, out: &mut Vec<u8>) -> Result<Next, String> {
        {
            let mut world = self.world.borrow_mut();
            world.time.set(now);
            if random.chance(200) {
                world.tick(random);
            }
            if random.chance(4) {
                world.replace();
            }
        }
        if !self.has_introduced {
            if self.is_validated {
                self.introduce(out);
            }
            return Ok(Next::Await);
        }
        self.acknowledge(random, out);
        while self.left > 0 && self.due.len() < self.depth && random.chance(700) {
            self.left -= 1;
            self.act(now, random, out);
        }
        if self.left == 0 && !self.is_finishing {
            self.finish();
        }
        if self.is_over() {
            return Ok(Next::Finish);
        }
        let is_awaited = !self.due.is_empty() || self.is_finishing;
        Ok(if is_awaited { Next::Await } else { Next::Send })
    }

    fn receive(&mut self, now: Ns, input: &mut Input) -> Result<(), String> {
        self.world.borrow().time.set(now);
        let named = |number: u64, why: String| format!("client {number}: {why}");
        while let Some(received) =
            self.next_message(input).map_err(|why| named(self.number, why))?
        {
            self.take(now, &received).map_err(|why| named(self.number, why))?;
        }
        Ok(())
    }

    fn ended(&mut self, _: Ns, end: End, is_stopping: bool) -> Result<(), String> {
        let may_end = is_stopping || self.world.borrow().may_close;
        match end {
            End::Broken => Ok(()),
            End::Closed if self.is_over() => Ok(()),
            _ if may_end => Ok(()),
            _ => {
                let (number, due) = (self.number, self.due.len());
                Err(format!("client {number}: the end ({end:?}) with {due} answers due"))
            }
        }
    }
}

impl World {
    /// The newest version of a record.
    pub(super) fn current(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Ticks(number) => self.versions[number],
            Kind::Puts(_) => self.next_write,
            Kind::Fleeting => 0,
        }
    }
}
