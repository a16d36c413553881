//! A client's side of a connection that has no socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use records::protocol::messages::{ChannelCreated, CreateChannels, Introduction};
use records::protocol::{
    Command, Frame, Frames, Order, Pool, Reader, Sender, Status, Writer, message,
};
use records::server::{RecordsConnection, Service};
use wire::{Connection, Input, Ns, Output, Peer, ProtocolError, Wake, Waker, deliver};

/// A message of the server.
pub(crate) struct Said {
    pub(crate) command: Command,
    order: Order,
    bytes: Vec<u8>,
}

impl Said {
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.bytes, self.order)
    }
}

/// All that was answered.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) messages: Vec<Said>,
    pub(crate) controls: Vec<(u8, u32)>,
}

pub(crate) struct Session {
    connection: RecordsConnection,
    pub(crate) out: Output,
    wakes: Arc<AtomicUsize>,
    next: u32,
    now: Ns,
}

impl Session {
    pub(crate) fn new(service: &Arc<Service>) -> Self {
        let mut connection = RecordsConnection::new(Arc::clone(service));
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&wakes);
        let waker = Waker::new(move || {
            counted.fetch_add(1, SeqCst);
        });
        let peer = Peer { address: "127.0.0.1:9".parse().unwrap(), waker };
        let mut out = Output::new(1 << 30);
        connection.opened(0, &peer, &mut out).unwrap();
        let mut session = Self { connection, out, wakes, next: 1, now: 0 };
        let greeting = session.answers();
        assert_eq!(greeting.controls, [(2, 0)]);
        assert_eq!(greeting.messages[0].command, Command::Validation);
        session
    }

    /// A session that has said who it is.
    pub(crate) fn introduced(service: &Arc<Service>) -> Self {
        let mut session = Self::new(service);
        let said = Introduction {
            buffer_bytes: 0,
            registry_size: 0,
            quality: 0,
            method: "anonymous".into(),
            item: None,
        };
        let answers = session.say(Command::Validation, |writer| said.write(writer));
        assert_eq!(Status::read(&mut answers[0].reader()), Status::ok());
        session
    }

    /// The server's number of a new channel.
    pub(crate) fn channel(&mut self, name: &str) -> u32 {
        let asked = CreateChannels(vec![(self.next, name.into())]);
        self.next += 1;
        let answers = self.say(Command::CreateChannel, |writer| asked.write(writer));
        let made = ChannelCreated::read(&mut answers[0].reader());
        assert_eq!(made.status, Status::ok());
        made.server_id
    }

    /// Says a message, and leaves the answer in the output.
    pub(crate) fn put(&mut self, command: Command, body: impl FnOnce(&mut Writer<'_, Vec<u8>>)) {
        let mut bytes = Vec::new();
        message(&mut bytes, Sender::Client, Order::Little, command, body);
        self.deliver(&bytes).unwrap();
    }

    /// Says a message, and gives the answers.
    pub(crate) fn say(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Writer<'_, Vec<u8>>),
    ) -> Vec<Said> {
        self.put(command, body);
        self.answers().messages
    }

    /// Says bytes.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<Answers, ProtocolError> {
        self.deliver(bytes)?;
        Ok(self.answers())
    }

    fn deliver(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let mut input = Input::of(bytes);
        deliver(&mut self.connection, self.now, &mut input, &mut self.out).map(drop)
    }

    /// Says what is refused, and gives the reason.
    pub(crate) fn fails(&mut self, command: Command, body: &[u8]) -> String {
        self.fails_with(command, |writer| writer.raw(body))
    }

    pub(crate) fn fails_with(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Writer<'_, Vec<u8>>),
    ) -> String {
        let mut bytes = Vec::new();
        message(&mut bytes, Sender::Client, Order::Little, command, body);
        self.fails_raw(&bytes)
    }

    pub(crate) fn fails_raw(&mut self, bytes: &[u8]) -> String {
        let fault = self.deliver(bytes).unwrap_err().to_string();
        let answers = self.answers().messages;
        let last = answers.last().expect("a last word");
        assert_eq!(last.command, Command::Message);
        let word = String::from_utf8_lossy(&last.bytes).into_owned();
        assert!(word.contains(&fault), "{word}");
        fault
    }

    /// How often the connection was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(SeqCst)
    }

    /// Lets time go by.
    pub(crate) fn pass(&mut self, ns: Ns) {
        self.now += ns;
    }

    /// What the connection says of itself, once it was woken. A second has gone by.
    pub(crate) fn resume(&mut self) -> Vec<Said> {
        self.pass(1_000_000_000);
        self.resume_now()
    }

    /// The same at the time of the last call.
    pub(crate) fn resume_now(&mut self) -> Vec<Said> {
        self.connection.resume(self.now, Wake::Posted, &mut self.out).unwrap();
        self.answers().messages
    }

    /// As a client that doesn't read: the connection is resumed, and its output stays.
    pub(crate) fn resume_unread(&mut self) -> Result<(), ProtocolError> {
        self.connection.resume(self.now, Wake::Posted, &mut self.out).map(drop)
    }

    /// Ends the connection.
    pub(crate) fn close(mut self) {
        self.connection.closed(wire::Closed::ByPeer);
    }

    /// How long until the connection wants to be called.
    pub(crate) fn waits_ns(&self) -> Option<Ns> {
        self.connection.deadline().map(|at| at - self.now)
    }

    fn answers(&mut self) -> Answers {
        let bytes = self.out.take();
        let mut frames = Frames::new(Sender::Server, 1 << 30, Pool::new(0));
        let mut all = Answers::default();
        let mut left = &bytes[..];
        loop {
            let (used, frame) = frames.next(left).unwrap();
            left = &left[used..];
            match frame {
                Some(Frame::Control(header)) => all.controls.push((header.code, header.size)),
                Some(Frame::Message { command, order, body, .. }) => {
                    let bytes = body.reader(order).rest().to_vec();
                    all.messages.push(Said { command, order, bytes });
                }
                None => match frames.place() {
                    Some(place) if !left.is_empty() => {
                        let count = place.len().min(left.len());
                        place[..count].copy_from_slice(&left[..count]);
                        left = &left[count..];
                        frames.placed(count);
                    }
                    _ if used == 0 => return all,
                    _ => {}
                },
            }
        }
    }
}
