//! Commands that go on when the server goes away and comes back, or the record is remade.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::common::{Foreign, Served, ask, built, free_ports, peer};

/// How long a line is waited for: a client tries again after 10 s at the latest.
const PATIENCE: Duration = Duration::from_secs(60);

/// `loadline records` that goes on until the test ends it.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    notes: Receiver<String>,
}

impl Running {
    /// With a server's address, or the port where searches are sent.
    fn start(at: Result<&str, u16>, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.args(["records", "--timeout", "10"]).env("EPICS_PVA_AUTO_ADDR_LIST", "NO");
        match at {
            Ok(address) => command.args(["--server", address]),
            Err(port) => command.env("EPICS_PVA_ADDR_LIST", format!("127.0.0.1:{port}")),
        };
        let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("loadline starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (said, notes) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Self { child, out, notes }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line
    }

    /// The next line on standard error that has this word.
    fn note(&self, word: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.notes.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(word) => return line,
                Ok(line) => before.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {word:?}, only {before:?}")
                }
            }
        }
    }

    fn is_success(&mut self) -> bool {
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const NUMBER: &str = "[[record]]\nname = \"number\"\ntype = \"long\"\nvalue = 7\n";

#[test]
fn a_monitor_goes_on_when_the_server_comes_back_and_when_the_record_is_remade() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let first = Served::start_at(&address, NUMBER, &["--no-search"]);
    let mut monitor = Running::start(Ok(&address), &["monitor", "number"]);
    let mut scripted = Running::start(Ok(&address), &["monitor", "number", "--once"]);
    assert!(monitor.line().ends_with("  7\n") && scripted.line().ends_with("  7\n"));
    drop(first);
    assert!(!scripted.is_success());
    monitor.note("disconnected");
    let _second = Served::start_at(&address, &NUMBER.replace('7', "8"), &["--no-search"]);
    assert_eq!(monitor.note("connected to"), format!("number: connected to {address}"));
    assert!(monitor.line().ends_with("  8\n"));
    ask(&address, &["call", "server", "op=destroy", "name=number"]).expect("it is destroyed");
    monitor.note("disconnected");
    let made = format!("toml={}", NUMBER.replace('7', "9"));
    ask(&address, &["call", "server", "op=create", &made]).expect("it is made");
    monitor.note("connected to");
    assert!(monitor.line().ends_with("  9\n"));
}

#[test]
fn repeated_gets_and_puts_go_on_when_the_server_comes_back() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let wave = "[[record]]\nname = \"wave\"\ntype = \"long[]\"\nvalue = [7]\n";
    let first = Served::start_at(&address, wave, &["--no-search"]);
    let commands: [&[&str]; 3] = [
        &["get", "wave", "--repeat", "--delay", "0.01"],
        &["put", "wave", "--repeat", "--delay", "0.01"],
        &["get", "wave", "--recreate-channel-every", "1", "--delay", "0.01"],
    ];
    let mut running = commands.map(|command| Running::start(Ok(&address), command));
    running.iter_mut().for_each(|one| assert!(one.line().contains("/s")));
    drop(first);
    running.iter().for_each(|one| drop(one.note("disconnected")));
    let _second = Served::start_at(&address, wave, &["--no-search"]);
    for one in &mut running {
        one.note("connected to");
        // The first may still be of what was before.
        assert!((0..2).all(|_| one.line().contains("/s")));
    }
}

/// Listens at `address` as another program: sends the first client what is no pvAccess, and ends.
fn foreign_at(address: &str) -> std::thread::JoinHandle<()> {
    let listener = TcpListener::bind(address).expect("a listener");
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("sent");
    })
}

const FOREIGN: &str = "breaks the protocol: \"HTTP/1.1\" is the header of no pvAccess message";

#[test]
fn what_is_no_server_is_named_with_what_it_sent_and_tried_again() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let first = Served::start_at(&address, NUMBER, &["--no-search"]);
    let mut monitor = Running::start(Ok(&address), &["monitor", "number"]);
    assert!(monitor.line().ends_with("  7\n"));
    drop(first);
    monitor.note("disconnected");
    let foreign = foreign_at(&address);
    let said = monitor.note(&format!("{address} {FOREIGN}"));
    assert!(said.starts_with("number: not connected yet: "), "{said}");
    foreign.join().expect("an end");
    let _second = Served::start_at(&address, &NUMBER.replace('7', "8"), &["--no-search"]);
    monitor.note("connected to");
    assert!(monitor.line().ends_with("  8\n"));
}

#[test]
fn a_name_server_that_is_none_is_named_too() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    for command in [&["get", "one", "two"][..], &["put", "one", "1"]] {
        let foreign = foreign_at(&address);
        let mut loadline = Command::new(env!("CARGO_BIN_EXE_loadline"));
        loadline.args(["records", "--timeout", "3"]).args(command);
        loadline.env("EPICS_PVA_AUTO_ADDR_LIST", "NO").env("EPICS_PVA_NAME_SERVERS", &address);
        let output = loadline.output().expect("loadline runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{address} {FOREIGN}")), "{said}");
        foreign.join().expect("an end");
    }
}

#[test]
fn a_monitor_searches_again_for_a_server_of_pvxs_or_p4p() {
    let [udp, tcp] = free_ports();
    if let Some(server) = built("pvxs-server") {
        // Its TCP port is another one each time.
        let udp_port = udp.to_string();
        let start = || Foreign::start(&server, &["--udp-port", &udp_port]);
        goes_on(Err(udp), "k0000000", start);
    }
    if let Some(python) = peer("python", "p4p") {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../peers/p4p/server.py");
        let tcp_port = tcp.to_string();
        let start = || Foreign::start(&python, &[script, "--port", &tcp_port]);
        goes_on(Ok(&format!("127.0.0.1:{tcp}")), "k0000000", start);
    }
}

fn goes_on(at: Result<&str, u16>, name: &str, start: impl Fn() -> Foreign) {
    let first = start();
    ask(first.address(), &["put", name, "5"]).expect("it is put");
    let mut monitor = Running::start(at, &["monitor", name]);
    assert!(monitor.line().ends_with("  5\n"));
    drop(first);
    monitor.note("disconnected");
    let second = start();
    monitor.note("connected to");
    assert!(monitor.line().ends_with("  0\n"));
    ask(second.address(), &["put", name, "6"]).expect("it is put");
    assert!(monitor.line().ends_with("  6\n"));
}
