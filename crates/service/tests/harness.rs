//! The harness from outside, around a toy service.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

/// A running toy, with its data directory.
struct Toy {
    child: Child,
    ready: serde_json::Value,
    stderr: BufReader<std::process::ChildStderr>,
}

fn toy(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toy-service"));
    command.arg("--data").arg(data).args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Toy {
    fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::spawn(toy(data, arguments))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the toy starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let ready = serde_json::from_str(&line).expect("the ready line");
        Self { child, ready, stderr }
    }

    fn connect(&self, name: &str) -> TcpStream {
        let address = self.ready["addresses"][name].as_str().expect("an address");
        TcpStream::connect(address).expect("a connection")
    }

    /// `/metrics`, with these lines in the request's head.
    fn metrics(&self, lines: &str) -> String {
        let mut socket = self.connect("metrics");
        let host = socket.peer_addr().expect("an address");
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n{lines}\r\n");
        socket.write_all(request.as_bytes()).expect("sent");
        std::io::read_to_string(socket).expect("text")
    }

    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args([name, &process]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Reads its log up to a line that holds `text`, and returns that.
    fn logs(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.stderr.read_line(&mut line).expect("a log");
            assert!(read > 0, "it never logged {text:?}");
        }
        line
    }
}

impl Drop for Toy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// That it ends with code 2 and says this.
fn refuses(output: Output, said: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains(said), "{text}");
}

#[test]
fn it_says_where_it_is_answers_shows_metrics_and_drains() {
    let data = folder();
    // A network namespace may have no IPv6 address.
    let second = if TcpListener::bind("[::1]:0").is_ok() { "[::1]:0" } else { "127.0.0.1:0" };
    let listen = format!("127.0.0.1:0,{second}");
    let arguments = ["--listen", &listen, "--metrics", "127.0.0.1:0"];
    let mut toy = Toy::start(data.path(), &arguments);
    assert_eq!((&toy.ready["service"], &toy.ready["ready"]), (&"toy".into(), &true.into()));
    assert_eq!(toy.ready["pid"], toy.child.id());
    assert_eq!(toy.ready["data"], data.path().to_str().expect("UTF-8"));
    let mut answer = [0; 6];
    for name in ["lines", "lines2"] {
        let mut socket = toy.connect(name);
        socket.write_all(b"hello\n").expect("sent");
        socket.read_exact(&mut answer).expect("answered");
        assert_eq!(&answer, b"hello\n");
    }
    let page = toy.metrics("");
    assert!(page.contains("\ntoy_lines_total 2\n"), "{page}");
    assert!(page.contains("\ntoy_connections_opened_total 2\n"), "{page}");
    toy.signal("-TERM");
    assert_eq!(toy.child.wait().expect("an end").code(), Some(0));
    let format = std::fs::read_to_string(data.path().join("FORMAT")).expect("read");
    assert_eq!(format, "toy 1\n");
}

#[test]
fn options_that_it_does_not_take_and_addresses_that_are_not_meant_are_usage_errors() {
    let data = folder();
    let refuses = |arguments: &[&str], said| {
        refuses(toy(data.path(), arguments).output().expect("it runs"), said);
    };
    refuses(&["--memory", "1MiB"], "unexpected argument '--memory'");
    refuses(&["--listen", "0.0.0.0:0"], "--public");
    refuses(&["--listen", "127.0.0.1:0", "--metrics", "[::]:0"], "--metrics [::]:0");
    refuses(&["--user", "no-such-user"], "no such user");
    refuses(&["--token-file", "x"], "--metrics");
    let empty = data.path().join("empty");
    std::fs::write(&empty, "").expect("written");
    let tokens = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--token-file"];
    refuses(&[&tokens[..], &[empty.to_str().expect("UTF-8")]].concat(), "holds no token");
    refuses(&[&tokens[..], &["/dev/null"]].concat(), "has to be a regular file");
    std::fs::remove_file(&empty).expect("removed");
    let open = Toy::start(data.path(), &["--listen", "127.0.0.1:0"]);
    let second = toy(data.path(), &["--listen", "127.0.0.1:0"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.code() == Some(1) && text.contains("in use by process"), "{text}");
    drop(open);
}

#[test]
fn a_public_service_keeps_metrics_on_loopback_to_requests_that_name_it() {
    let data = folder();
    let arguments = ["--listen", "127.0.0.1:0", "--public", "--metrics", "127.0.0.1:0"];
    let toy = Toy::start(data.path(), &arguments);
    assert!(toy.metrics("").starts_with("HTTP/1.0 200 "));
    let mut socket = toy.connect("metrics");
    let port = socket.peer_addr().expect("an address").port();
    let request = format!("GET /metrics HTTP/1.0\r\nHost: evil.example:{port}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("sent");
    let answer = std::io::read_to_string(socket).expect("text");
    assert!(answer.starts_with("HTTP/1.0 421 "), "{answer}");
}

/// The files of a toy that encrypts and wants tokens.
struct Secrets {
    folder: TempDir,
    tokens: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Secrets {
    fn new() -> Self {
        let folder = folder();
        let [tokens, certificate, key] =
            ["tokens", "certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&tokens, "0123456789abcdef\n").expect("written");
        let secrets = Self { folder, tokens, certificate, key };
        secrets.renew();
        secrets
    }

    /// Writes another certificate and its key, and returns it.
    fn renew(&self) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        std::fs::write(&self.certificate, made.cert.pem()).expect("written");
        std::fs::write(&self.key, made.signing_key.serialize_pem()).expect("written");
        made.cert.der().clone()
    }

    /// A toy with them.
    fn toy(&self, arguments: &[&str]) -> Toy {
        let mut command = toy(self.folder.path().join("data").as_path(), arguments);
        command.args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--token-file"]);
        command.arg(&self.tokens).arg("--tls-cert").arg(&self.certificate);
        command.arg("--tls-key").arg(&self.key);
        Toy::spawn(command)
    }
}

#[test]
fn a_hangup_reads_tokens_and_certificates_again() {
    let secrets = Secrets::new();
    let mut toy = secrets.toy(&[]);
    let with = |toy: &Toy, token| toy.metrics(&format!("Authorization: Bearer {token}\r\n"));
    assert!(toy.metrics("").starts_with("HTTP/1.0 401 "));
    assert!(with(&toy, "0123456789abcdef").starts_with("HTTP/1.0 200 "));
    std::fs::write(&secrets.tokens, "fedcba9876543210\n").expect("written");
    secrets.renew();
    toy.signal("-HUP");
    toy.logs("certificates were read again");
    toy.logs("tokens were read again");
    assert!(with(&toy, "0123456789abcdef").starts_with("HTTP/1.0 401 "));
    assert!(with(&toy, "fedcba9876543210").starts_with("HTTP/1.0 200 "));
    std::fs::write(&secrets.tokens, "").expect("written");
    toy.signal("-HUP");
    toy.logs("tokens stay as they were");
    assert!(with(&toy, "fedcba9876543210").starts_with("HTTP/1.0 200 "));
}

#[test]
fn a_hangup_that_finds_pipes_changes_nothing_and_the_service_still_ends() {
    let secrets = Secrets::new();
    let mut toy = secrets.toy(&[]);
    for path in [&secrets.certificate, &secrets.tokens] {
        std::fs::remove_file(path).expect("removed");
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo runs").success());
    }
    toy.signal("-HUP");
    let said = toy.logs("certificates stay as they were");
    assert!(said.contains("certificate.pem: it is a pipe (FIFO)"), "{said}");
    let said = toy.logs("tokens stay as they were");
    assert!(said.contains("tokens: it is a pipe (FIFO), and has to be a regular file"), "{said}");
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    assert!(toy.metrics(token).starts_with("HTTP/1.0 200 "));
    toy.signal("-TERM");
    assert_eq!(toy.child.wait().expect("an end").code(), Some(0));
}

/// The application protocol that the toy chooses of those that are offered; an error when it
/// refuses them.
fn negotiated(
    toy: &Toy,
    trusted: &CertificateDer<'static>,
    offered: &[&str],
) -> std::io::Result<Option<String>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| (*name).into()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut socket = toy.connect("lines");
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    let chosen = connection.alpn_protocol().map(<[u8]>::to_vec);
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(b"hello\n")?;
    let mut answer = [0; 6];
    stream.read_exact(&mut answer)?;
    assert_eq!(&answer, b"hello\n");
    Ok(chosen.map(|name| String::from_utf8(name).expect("a name")))
}

#[test]
fn a_client_and_the_service_agree_on_one_of_the_protocols_that_both_offer() {
    let secrets = Secrets::new();
    let trusted = secrets.renew();
    let toy = secrets.toy(&[]);
    let chosen = |offered| negotiated(&toy, &trusted, offered).expect("a connection");
    assert_eq!(chosen(&["other", "echo", "lines"]).as_deref(), Some("lines"));
    assert_eq!(chosen(&["echo"]).as_deref(), Some("echo"));
    assert_eq!(chosen(&[]), None);
    let refused = negotiated(&toy, &trusted, &["other"]).expect_err("refused").to_string();
    assert!(refused.contains("NoApplicationProtocol"), "{refused}");
}

#[test]
fn a_handshake_that_does_not_go_on_ends_after_the_time_that_is_typed() {
    let secrets = Secrets::new();
    let toy = secrets.toy(&["--handshake-timeout", "50ms"]);
    let started = std::time::Instant::now();
    let mut silent = toy.connect("lines");
    // An alert at most; the end may be a reset.
    let mut answer = Vec::new();
    let _ = silent.read_to_end(&mut answer);
    assert!(answer.len() < 16 && started.elapsed().as_secs() < 9, "{:?}", started.elapsed());
}

#[test]
fn each_signal_that_ends_it_ends_it_in_good_order() {
    for signal in ["-INT", "-TERM", "-USR1"] {
        let data = folder();
        let mut toy = Toy::start(data.path(), &["--listen", "127.0.0.1:0"]);
        toy.signal(signal);
        assert_eq!(toy.child.wait().expect("an end").code(), Some(0), "{signal}");
    }
}

#[test]
fn a_service_manager_hears_when_it_is_ready_and_when_it_stops() {
    let (data, files) = (folder(), folder());
    let path = files.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("bound");
    let mut command = toy(data.path(), &["--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path);
    let mut toy = Toy::spawn(command);
    let state = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).expect("a state");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(state(), "READY=1");
    toy.signal("-HUP");
    let reloading = state();
    let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("both at once");
    assert!(since.parse::<u64>().is_ok_and(|us| us > 0), "{reloading}");
    assert_eq!(state(), "READY=1");
    toy.signal("-INT");
    assert_eq!(state(), "STOPPING=1");
    assert!(toy.child.wait().expect("an end").success());
}

#[test]
fn another_user_is_what_the_process_becomes_once_it_is_bound() {
    if !nix::unistd::geteuid().is_root() {
        testing::skip("only root can become another user");
        return;
    }
    let (data, files) = (folder(), folder());
    // The data directory is written by the user: it is opened as that user.
    for (path, mode) in [(data.path(), 0o777), (files.path(), 0o755)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("changed");
    }
    let socket = files.path().join("socket");
    let listen = format!("unix:{}", socket.display());
    let toy = Toy::start(data.path(), &["--listen", &listen, "-u", "nobody"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", toy.child.id()));
    let status = status.expect("read");
    let nobody = nix::unistd::User::from_name("nobody").expect("read").expect("a user");
    let line = |name| status.lines().find(|line| line.starts_with(name)).expect("a line");
    let ids = |name| line(name).split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let uid = nobody.uid.to_string();
    assert_eq!(ids("Uid:"), [&*uid, &*uid, &*uid, &*uid]);
    let gid = nobody.gid.to_string();
    assert_eq!(ids("Gid:"), [&*gid, &*gid, &*gid, &*gid]);
    assert_eq!(ids("Groups:"), [gid]);
    for path in [socket, data.path().join("FORMAT"), data.path().join("LOCK")] {
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&path).expect("there"));
        assert_eq!(owner, nobody.uid.as_raw(), "{}", path.display());
    }
}
