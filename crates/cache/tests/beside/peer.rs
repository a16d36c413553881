//! Real programs, where they are installed.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where a peer's program is; without it the test is skipped.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    testing::program(name)
}

/// Whether everything has to be there.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// A server of somebody else's, ended with the test.
pub(crate) struct Peer {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// Starts a program with arguments in which `{port}` is a free one.
    pub(crate) fn start(program: &PathBuf, arguments: &[&str]) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, testing::free_port()));
        let port = address.port().to_string();
        let child = Command::new(program)
            .args(arguments.iter().map(|argument| argument.replace("{port}", &port)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let peer = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "{} is never ready", program.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        peer
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
