//! A PostgreSQL that was started for a test.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the programs of PostgreSQL lie.
pub(crate) const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A PostgreSQL with a folder of its own.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Ends it; the processes that it has started end, too.
    pub(crate) fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a server, or skips the test where PostgreSQL is not installed.
pub(crate) fn server(settings: &[&str]) -> Option<Server> {
    if !Path::new(PROGRAMS).join("postgres").exists() {
        testing::skip("postgresql is not installed (`cargo xtask peers` installs the peers)");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, testing::free_port()));
    let process = start(folder.path(), address, settings);
    let mut server = Server { process, address, _folder: folder };
    server.wait();
    Some(server)
}

fn start(folder: &Path, address: SocketAddr, settings: &[&str]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/postgres/serve.sh");
    let mut command = Command::new("sh");
    command.arg(script).arg(folder.join("data")).arg(address.port().to_string());
    command.args(["fsync=off", "shared_buffers=16MB"]).args(settings);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a shell")
}

impl Server {
    fn wait(&mut self) {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.process.try_wait().expect("a status");
            assert_eq!(ended, None, "PostgreSQL has ended");
            assert!(start.elapsed() < Duration::from_secs(60), "PostgreSQL does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
