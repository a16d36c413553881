//! Which carrier, and to where, as it is typed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::child::ChildPipe;
use super::duplex::OverDuplex;
use super::here::Here;
use super::stream::{Stream, Tuning, connect_unix};
use super::{Carrier, Peer, listener};
use crate::mpi::World;
use crate::shm::Link;

/// A server of own frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierAddress {
    /// Within this process.
    Here,
    /// Within this process, by the frames that others carry.
    Frames,
    /// The file of a Unix socket.
    Unix(PathBuf),
    /// The file of a Unix socket, over which the server passes memory.
    Shm(PathBuf),
    /// A host and port.
    Tcp(String),
    /// A command for the shell, whose standard input and output are the connection.
    Pipe(String),
    /// A rank of the job of MPI in which this process is rank 0.
    Mpi(usize),
}

/// What is typed names no carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCarrier(String);

impl fmt::Display for BadCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" names no carrier and its place: write here:, frames:, shm:PATH, unix:PATH, \
             tcp:HOST:PORT, pipe:COMMAND, mpi:, grpc://HOST:PORT or, for ping with add, direct:, \
             codec: or table:",
            self.0
        )?;
        // A server of gRPC is named so.
        let is_socket = self.0.parse::<SocketAddr>().is_ok() || self.0.starts_with("localhost:");
        match self.0.strip_prefix("tcp:") {
            _ if is_socket => write!(f, " (did you mean tcp:{}?)", self.0),
            Some("") => f.write_str(
                "; with --server COMMAND, such as 'loadline serve rpc --listen 127.0.0.1:0', ping \
                 and why start what tcp: alone stands for",
            ),
            Some(_) => f.write_str(", with a port from 1 to 65535"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BadCarrier {}

impl FromStr for CarrierAddress {
    type Err = BadCarrier;

    fn from_str(typed: &str) -> Result<Self, BadCarrier> {
        let bad = || BadCarrier(typed.to_owned());
        match typed.split_once(':').ok_or_else(bad)? {
            ("here", "") => Ok(Self::Here),
            ("frames", "") => Ok(Self::Frames),
            ("unix", path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            ("shm", path) if !path.is_empty() => Ok(Self::Shm(path.into())),
            ("tcp", address) => {
                let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
                let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
                if host.is_empty() || !is_port { Err(bad()) } else { Ok(Self::Tcp(address.into())) }
            }
            ("pipe", command) if !command.trim().is_empty() => Ok(Self::Pipe(command.into())),
            ("mpi", "") => Ok(Self::Mpi(1)),
            ("mpi", rank) => match rank.parse() {
                Ok(rank @ 1..) => Ok(Self::Mpi(rank)),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for CarrierAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("here:"),
            Self::Frames => f.write_str("frames:"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Shm(path) => write!(f, "shm:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Pipe(command) => write!(f, "pipe:{command}"),
            Self::Mpi(rank) => write!(f, "mpi:{rank}"),
        }
    }
}

impl CarrierAddress {
    /// Connects within a time, beside which the system may look for the addresses of a name; or
    /// starts the command.
    ///
    /// # Errors
    /// When nothing is there, or the command can't be started.
    pub fn connect(&self, tuning: Tuning, limit: Duration) -> io::Result<Box<dyn Carrier>> {
        Ok(match self {
            Self::Here => Box::new(Here::new(false)),
            Self::Frames => Box::new(Here::new(true)),
            Self::Unix(path) => Box::new(Stream::unix(path, tuning, limit)?),
            Self::Shm(path) => {
                let socket = connect_unix(path, limit)?.into();
                let duplex = Link::take(socket, tuning.wait.unwrap_or_default(), limit)?;
                let peer = listener(duplex.socket());
                Box::new(OverDuplex { duplex, peer })
            }
            Self::Tcp(address) => Box::new(Stream::tcp(address, tuning, limit)?),
            Self::Pipe(command) => Box::new(ChildPipe::start(command, tuning.budget())?),
            Self::Mpi(rank) => {
                let how = tuning.wait.unwrap_or_default();
                let duplex = World::join()?.link(*rank, how, limit)?;
                // What has started this rank has started the others of this host.
                Box::new(OverDuplex { duplex, peer: Peer::Within(parent_id()) })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::thread;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::*;

    #[test]
    fn connecting_to_a_socket_that_accepts_nothing_ends_in_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("bound");
        // It has room for one connection.
        listen(&listener, 0).expect("it listens");
        let first = UnixStream::connect(&path).expect("the first");
        let (sender, ended) = channel();
        thread::spawn(move || {
            for address in [CarrierAddress::Unix(path.clone()), CarrierAddress::Shm(path)] {
                let connected = address.connect(Tuning::default(), Duration::from_millis(20));
                sender.send(connected.err().map(|error| error.kind())).expect("the test waits");
            }
        });
        for _ in 0..2 {
            let ended = ended.recv_timeout(Duration::from_secs(30));
            assert_eq!(ended, Ok(Some(io::ErrorKind::TimedOut)));
        }
        drop((first, listener));
    }

    #[test]
    fn an_address_names_its_carrier() {
        for typed in [
            "here:",
            "frames:",
            "unix:/run/a",
            "shm:/run/b",
            "tcp:localhost:7",
            "tcp:[::1]:7",
            "pipe:a b | c",
            "mpi:3",
        ] {
            let address: CarrierAddress = typed.parse().expect(typed);
            assert_eq!(address.to_string(), typed);
        }
        for wrong in [
            "",
            "a",
            "here:x",
            "unix:",
            "shm:",
            "tcp:a",
            "tcp::7",
            "tcp:a:0",
            "tcp:a:99999",
            "pipe: ",
            "mpi:0",
            "mpi:a",
        ] {
            assert!(wrong.parse::<CarrierAddress>().is_err(), "{wrong}");
        }
    }
}
