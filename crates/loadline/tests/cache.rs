//! `loadline serve cache`, from outside: memcached's command line, Unix sockets, datagrams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A service, ended with the test.
struct Served {
    child: Child,
    ready: serde_json::Value,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["serve", "cache"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("loadline starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).expect("the ready line");
        Self { child, ready }
    }

    fn address(&self) -> &str {
        self.ready["address"].as_str().expect("an address")
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["cache", "--server", self.address()])
            .args(arguments)
            .output()
            .expect("loadline runs")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn memcacheds_options_are_taken_and_what_means_nothing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, pid) = (folder.path().join("cache.sock"), folder.path().join("cache.pid"));
    let (socket, pid) = (socket.to_str().expect("UTF-8"), pid.to_str().expect("UTF-8"));
    let line = ["-p", "0", "-s", socket, "-m", "64", "-t", "2", "-u", "nobody", "-P", pid, "-A"];
    let mut served = Served::start(&line);
    assert_eq!(served.address(), format!("unix:{socket}"));
    let written = std::fs::read_to_string(pid).expect("a process id");
    assert_eq!(written.trim(), served.ready["pid"].to_string());
    assert!(served.ask(&["set", "greeting", "hello"]).status.success());
    assert_eq!(served.ask(&["get", "greeting"]).stdout, b"hello\n");
    let mut client = std::os::unix::net::UnixStream::connect(socket).expect("a connection");
    client.write_all(b"shutdown\r\n").expect("sent");
    let status = served.child.wait().expect("an end");
    assert!(status.success(), "{status}");
    let mut said = String::new();
    let mut stderr = served.child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut said).expect("text");
    assert!(said.contains("-u (it keeps the user that started it) means nothing"), "{said}");
    assert!(!std::path::Path::new(pid).exists() && !std::path::Path::new(socket).exists());
}

#[test]
fn what_would_be_missed_is_refused_by_name() {
    for (option, said) in [
        (&["-d"][..], "-d:"),
        (&["-S"], "-S:"),
        (&["-Z"], "ssl_chain_cert"),
        (&["-o", "ssl_key=/x"], "without -Z"),
        (&["-e", "/x"], "-e:"),
        (&["-o", "ext_path=/x:1G"], "ext_path"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["serve", "cache", "-p", "0"])
            .args(option)
            .output()
            .expect("loadline runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(said), "{option:?}: {stderr}");
    }
}

#[test]
fn prometheus_reads_the_counters_at_an_address_of_its_own() {
    let served = Served::start(&["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    assert!(served.ask(&["set", "greeting", "hello"]).status.success());
    let address = served.ready["addresses"]["metrics"].as_str().expect("an address");
    let mut socket = std::net::TcpStream::connect(address).expect("a connection");
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("text");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("\ncache_cmd_set_total 1\n"));
}

#[test]
fn datagrams_are_answered_in_pieces_at_the_port_of_tcp() {
    let served = Served::start(&["--listen", "127.0.0.1:0", "--udp-port", "same"]);
    assert_eq!(served.ready["addresses"]["udp"].as_str(), Some(served.address()));
    let value = "v".repeat(3000);
    assert!(served.ask(&["set", "key", &value]).status.success());
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    socket.connect(served.address()).expect("an address");
    let ask = |frame: [u8; 8]| {
        socket.send(&[&frame[..], b"get key\r\n"].concat()).expect("sent");
        let mut piece = vec![0; 2000];
        let count = socket.recv(&mut piece).expect("a piece");
        piece.truncate(count);
        piece
    };
    let first = ask([7, 9, 0, 0, 0, 1, 0, 0]);
    assert_eq!((first.len(), &first[..8]), (1400, &[7, 9, 0, 0, 0, 3, 0, 0][..]));
    let mut answer = first[8..].to_vec();
    for sequence in 1..3 {
        let mut piece = [0; 2000];
        let count = socket.recv(&mut piece).expect("a piece");
        assert_eq!(piece[..8], [7, 9, 0, sequence, 0, 3, 0, 0]);
        answer.extend(&piece[8..count]);
    }
    assert_eq!(answer, format!("VALUE key 0 3000\r\n{value}\r\nEND\r\n").into_bytes());
    let refused = ask([7, 9, 0, 0, 0, 2, 0, 0]);
    assert_eq!(refused[8..], *b"SERVER_ERROR multi-packet request not supported\r\n");
}
