//! What the tests of the loop share: a server on a free port, clients that can't hang, a clock-free
//! way of waiting, and a toy protocol of lines.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use wire::{
    Address, Config, Connection, Flow, Input, ListenOptions, Listener, Loop, Ns, Output,
    ProtocolError, Server, ServerBuilder,
};

/// Nothing here takes a second; this only ends a test that would hang.
pub(crate) const HANG_GUARD: Duration = Duration::from_secs(60);

/// A server on a free port of the loopback interface.
pub(crate) fn serve<C, M>(config: Config, make: M) -> (Server, SocketAddr)
where
    C: Connection + 'static,
    M: Fn(Loop<C>) -> C + Send + Sync + 'static,
{
    let server = Server::start(config, vec![listener()], make).expect("a server");
    let address = internet(&server.addresses()[0]);
    (server, address)
}

pub(crate) fn loopback() -> Address {
    Address::Internet(([127, 0, 0, 1], 0).into())
}

pub(crate) fn listener() -> Listener {
    Listener::bind(&loopback(), &ListenOptions::default()).expect("a listener")
}

pub(crate) fn internet(address: &Address) -> SocketAddr {
    match address {
        Address::Internet(address) => *address,
        Address::Unix(path) => panic!("{} is no internet address", path.display()),
    }
}

/// A client whose reads and writes end at some time.
pub(crate) fn client(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect_timeout(&address, HANG_GUARD).expect("a connection");
    client.set_read_timeout(Some(HANG_GUARD)).expect("a time-out");
    client.set_write_timeout(Some(HANG_GUARD)).expect("a time-out");
    client.set_nodelay(true).expect("no delay");
    client
}

/// Waits until `holds`, for as long as it takes.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANG_GUARD, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A line of the input without its end, if it is whole.
pub(crate) fn line(input: &mut Input) -> Option<String> {
    let at = input.bytes().iter().position(|&byte| byte == b'\n')?;
    let line = String::from_utf8_lossy(&input.bytes()[..at]).into_owned();
    input.consume(at + 1);
    Some(line)
}

/// The next line that the server sends, with its end.
pub(crate) fn read_line(client: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        client.read_exact(&mut byte).expect("a line");
        line.extend_from_slice(&byte);
    }
    String::from_utf8(line).expect("text")
}

/// Starts a server of several protocols, and returns where it listens.
pub(crate) fn start(builder: ServerBuilder<Box<dyn Connection>>) -> (Server, Vec<SocketAddr>) {
    let server = builder.start().expect("a server");
    let addresses = server.addresses().iter().map(internet).collect();
    (server, addresses)
}

/// Calls `answer` for each line, with the newline.
pub(crate) struct Lines<F>(pub(crate) F);

impl<F: FnMut(&[u8], &mut Output) -> Flow> Connection for Lines<F> {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while !out.is_full() {
            let Some(at) = input.bytes().iter().position(|&byte| byte == b'\n') else { break };
            let flow = (self.0)(&input.bytes()[..=at], out);
            input.consume(at + 1);
            if flow == Flow::Close {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue)
    }
}

/// Answers each line with itself.
pub(crate) fn echo() -> Lines<impl FnMut(&[u8], &mut Output) -> Flow> {
    Lines(|line: &[u8], out: &mut Output| {
        out.put(line);
        Flow::Continue
    })
}

/// A small generator of test data; its seed is printed by who uses it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound` (xorshift64*).
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// One figure of this process's memory, such as `VmHWM`, in bytes.
pub(crate) fn memory_bytes(figure: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with(figure)).expect(figure);
    let kib = line.split_whitespace().nth(1).expect("a number");
    kib.parse::<usize>().expect("a number") * 1024
}

/// Runs a test in a process of its own: this program again, with this test alone. `test` is its
/// full name.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    const ALONE: &str = "WIRE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let exe = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new(exe);
    let status = command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").status();
    assert!(status.expect("this program again").success(), "{test} has failed");
}
