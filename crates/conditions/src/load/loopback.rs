//! As many bytes as a slice has, from a program that sends nothing else
//! (`peers/loopback/serve.py`): what the host's loopback takes of a read at least.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use load::{Caller, Op, Outcome, Stopwatch};
use wire::ProtocolError;

use super::bulk::slice_bytes;
use super::made::Made;
use super::operations::Do;

/// How long the program may be silent; the engine's own time-out is shorter.
const SILENCE: Duration = Duration::from_secs(60);

/// One slot's connection: it sends how many bytes it wants, little-endian, and reads them.
pub(super) struct Slot {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Slot {
    pub(super) fn connect(address: SocketAddr, made: &Arc<Made>) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, SILENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        // Without long intervals all are of one size, and the first one has all objects.
        Ok(Self { stream, bytes: vec![0; slice_bytes(made, 0)] })
    }

    fn slice(&mut self) -> std::io::Result<Outcome> {
        let watch = Stopwatch::start();
        self.stream.write_all(&(self.bytes.len() as u64).to_le_bytes())?;
        self.stream.read_exact(&mut self.bytes)?;
        Ok(Outcome { took: Some(watch.stop()), ..Outcome::right() })
    }
}

impl Caller for Slot {
    fn prepare(&mut self, _: u64) -> Result<Outcome, ProtocolError> {
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        match Do::of(op.operation) {
            Do::Slice => self.slice().map_err(|error| ProtocolError::new(error.to_string())),
            _ => Err(ProtocolError::new("the loopback has slices only: operation = \"slice\"")),
        }
    }
}
