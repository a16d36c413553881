//! A connection over which a server of this program sends what changes.

use std::io::{self, Error, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Answered, Client, MAX_ANSWER_BYTES, Result, Stream, receive};
use crate::protocol::Header;
use crate::protocol::header::SILENCE;

/// The shortest time for which a socket waits.
const SHORTEST: Duration = Duration::from_millis(1);

/// The connection.
pub(super) struct Pushed {
    stream: Box<dyn Stream>,
    /// The same, by which its time-outs are set.
    socket: TcpStream,
    /// How long an answer that has begun may stand still.
    within: Duration,
    /// When something has come last.
    heard: Instant,
}

impl std::fmt::Debug for Pushed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pushed").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Client {
    /// A connection over which the server sends portions of its tree as they change.
    pub(super) fn follow(&self, header: &Header) -> Result<Pushed> {
        let opened = || {
            let (stream, socket) = self.connect()?;
            Pushed::new(stream, socket, self.within, &self.request_of(header))
        };
        opened().map_err(|why| self.broken(why))
    }
}

impl Pushed {
    /// Sends the request over a connection.
    fn new(
        mut stream: Box<dyn Stream>,
        socket: TcpStream,
        within: Duration,
        request: &[u8],
    ) -> io::Result<Self> {
        stream.write_all(request)?;
        stream.flush()?;
        Ok(Self { stream, socket, within, heard: Instant::now() })
    }

    /// The next answer, which is waited for this long.
    ///
    /// # Errors
    /// When the connection has ended or broken, or no sign of life has come.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<Answered>> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Behind this time a server that sends nothing counts as gone, however long the wait.
            match self.begun(left.min(2 * SILENCE))? {
                // A sign of life has nothing in it.
                Some(answer) if !answer.1.is_empty() => return Ok(Some(answer)),
                _ if Instant::now() >= end => return Ok(None),
                _ => {}
            }
        }
    }

    /// The answer that begins within this time.
    fn begun(&mut self, within: Duration) -> io::Result<Option<Answered>> {
        self.socket.set_read_timeout(Some(within.max(SHORTEST)))?;
        let mut first = [0];
        match self.stream.read(&mut first) {
            Ok(0) => {
                return Err(Error::new(ErrorKind::UnexpectedEof, "it has ended the connection"));
            }
            Ok(_) => {}
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if self.heard.elapsed() > 2 * SILENCE {
                    return Err(Error::new(ErrorKind::TimedOut, "it has sent no sign of life"));
                }
                return Ok(None);
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => return Ok(None),
            Err(why) => return Err(why),
        }
        self.socket.set_read_timeout(Some(self.within))?;
        let mut answer = Vec::new();
        let stream = first.chain(&mut self.stream);
        let encoding = receive(stream, MAX_ANSWER_BYTES, &mut answer)?;
        self.heard = Instant::now();
        Ok(Some((encoding, answer)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::protocol::{Encoding, write_own};

    #[test]
    fn answers_come_one_by_one_and_signs_of_life_are_none() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("its address"));
        let socket = socket.expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        let stream = Box::new(socket.try_clone().expect("the same"));
        let within = Duration::from_secs(60);
        let mut pushed = Pushed::new(stream, socket, within, b"request").expect("sent");
        assert!(pushed.next(Duration::ZERO).expect("it is there").is_none());
        let mut bytes = Vec::new();
        for text in [&b""[..], b"one", b"", b"two"] {
            write_own(&mut bytes, Encoding::Binary, |out| out.extend_from_slice(text));
        }
        server.write_all(&bytes).expect("sent");
        for text in [&b"one"[..], b"two"] {
            let answer = pushed.next(within).expect("it is there");
            assert_eq!(answer, Some((Some(Encoding::Binary), text.to_vec())));
        }
        drop(server);
        assert!(pushed.next(within).is_err(), "it has ended");
    }
}
