//! A client's socket: whole messages out and in, arrays uncopied both ways.

use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use wire::{Input, Output};

use super::error::ClientError;
use crate::protocol::{
    Body, Command, Frame, Frames, Header, Order, Pool, Reader, Registry, Sender, control,
};

/// Servers close connections over which nothing comes; pvxs' clients echo this often, too.
const ECHO_EVERY: Duration = Duration::from_secs(15);

/// A server that sends nothing for this long, echoes included, is gone: EPICS_PVA_CONN_TMO, 30 s,
/// of which peers make 4/3.
const SILENCE: Duration = Duration::from_secs(40);

/// How many large buffers are kept warm.
const WARM_BUFFERS: usize = 2;

/// The size of a read of small messages.
const READ_BYTES: usize = 256 << 10;

/// A message that has come.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) command: Command,
    order: Order,
    body: Body<'static>,
}

impl Message {
    pub(super) fn reader(&self) -> Reader<'_> {
        self.body.reader(self.order)
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    address: SocketAddr,
    frames: Frames,
    input: Input,
    pub(super) output: Output,
    /// The order of bytes that the server asked for.
    pub(super) order: Order,
    /// The types that the server has given numbers to.
    pub(super) known: Registry,
    echoed: Instant,
    /// Since when reads have found nothing.
    silent_since: Option<Instant>,
    received: u64,
    sent: u64,
}

impl Stream {
    pub(super) fn connect(
        address: SocketAddr,
        timeout: Duration,
        most_bytes: usize,
    ) -> Result<Self, ClientError> {
        let failed = |error| ClientError::Io(address, error);
        let socket = TcpStream::connect_timeout(&address, timeout).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        Ok(Self {
            socket,
            address,
            frames: Frames::new(Sender::Server, most_bytes, Pool::new(WARM_BUFFERS)),
            input: Input::new(),
            output: Output::new(usize::MAX),
            order: Order::Little,
            known: Registry::default(),
            echoed: Instant::now(),
            silent_since: None,
            received: 0,
            sent: 0,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.received, self.sent)
    }

    /// Sends what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), ClientError> {
        while !self.output.is_empty() {
            let mut pieces = [IoSlice::new(&[]); 16];
            let count = self.output.pieces(usize::MAX, &mut pieces);
            match self.socket.write_vectored(&pieces[..count]) {
                Ok(0) => return Err(ClientError::Closed(self.address)),
                Ok(sent) => {
                    self.sent += sent as u64;
                    self.output.advance(sent);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ClientError::Io(self.address, error)),
            }
        }
        Ok(())
    }

    /// The next message; nothing, when the deadline passes before it is there.
    pub(super) fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, ClientError> {
        loop {
            if let Some(message) = self.cut()? {
                return Ok(Some(message));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.fill(left)?;
        }
    }

    /// A message that is there already.
    fn cut(&mut self) -> Result<Option<Message>, ClientError> {
        loop {
            let (used, frame) = match self.frames.next(self.input.bytes()) {
                Ok(found) => found,
                Err(fault) => return Err(ClientError::Broken(self.address, fault)),
            };
            let found = match frame {
                Some(Frame::Message { command, order, body, .. }) => {
                    let body = Body::Large(match body {
                        Body::Small(bytes) => bytes.to_vec().into(),
                        Body::Large(bytes) => bytes,
                    });
                    Some(Message { command, order, body })
                }
                Some(Frame::Control(header)) => {
                    self.control(&header);
                    None
                }
                None if used == 0 => return self.place_rest(),
                None => None,
            };
            self.input.consume(used);
            match found {
                Some(message) if message.command == Command::Echo => {}
                Some(message) => return Ok(Some(message)),
                None => {}
            }
        }
    }

    fn control(&mut self, header: &Header) {
        match header.code {
            control::SET_ORDER => self.order = header.order,
            control::ECHO_REQUEST => {
                let code = control::ECHO_RESPONSE;
                let echo = Header::control(Sender::Client, self.order, code, header.size);
                self.output.put(&echo.bytes());
            }
            _ => {}
        }
    }

    /// Moves what is in the input to the place where it belongs, and looks again.
    fn place_rest(&mut self) -> Result<Option<Message>, ClientError> {
        let Some(place) = self.frames.place().filter(|_| !self.input.is_empty()) else {
            return Ok(None);
        };
        let count = place.len().min(self.input.len());
        place[..count].copy_from_slice(&self.input.bytes()[..count]);
        self.input.consume(count);
        self.frames.placed(count);
        self.cut()
    }

    /// Reads once, for at most `most`.
    fn fill(&mut self, most: Duration) -> Result<(), ClientError> {
        let address = self.address;
        let failed = move |error| ClientError::Io(address, error);
        if self.echoed.elapsed() >= ECHO_EVERY {
            self.echoed = Instant::now();
            let order = self.order;
            crate::protocol::message(
                &mut self.output,
                Sender::Client,
                order,
                Command::Echo,
                |_| {},
            );
        }
        self.flush()?;
        let wait = most.min(ECHO_EVERY).max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(wait)).map_err(failed)?;
        let is_placed;
        let read = match self.frames.place() {
            Some(place) => {
                is_placed = true;
                self.socket.read(place)
            }
            None => {
                is_placed = false;
                match self.input.space(READ_BYTES, usize::MAX) {
                    Ok(space) => self.socket.read(space),
                    Err(fault) => return Err(ClientError::Broken(self.address, fault)),
                }
            }
        };
        match read {
            Ok(0) => Err(ClientError::Closed(self.address)),
            Ok(count) => {
                self.received += count as u64;
                self.silent_since = None;
                if is_placed {
                    self.frames.placed(count)
                } else {
                    self.input.filled(count)
                }
                Ok(())
            }
            Err(error) if is_nothing(&error) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() < SILENCE {
                    return Ok(());
                }
                let silent = format!("no bytes in {} s", SILENCE.as_secs());
                Err(failed(io::Error::new(ErrorKind::TimedOut, silent)))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
