//! `loadline serve cache` over TLS, spoken to by programs of others: OpenSSL's and Python's.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::served::Served;

/// Whether a program is there. A missing one is a named skip on a user's machine, and a failure
/// in a CI.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("version").stdout(Stdio::null()).status().is_ok();
    if !found {
        testing::skip(format!("{program} is not installed"));
    }
    found
}

/// A certificate for 127.0.0.1 that vouches for itself, and its key.
fn identity(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let status = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=cache"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status()
        .expect("openssl runs");
    assert!(status.success());
    (certificate, key)
}

/// What the server answers to a few lines sent by `openssl s_client`.
fn s_client(address: &str, certificate: &Path, version: &str, lines: &str) -> (bool, String) {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", version, "-connect", address])
        .arg("-CAfile")
        .arg(certificate)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut stdin = client.stdin.take().expect("a pipe");
    // It may have gone already, when the server has refused it.
    let _ = stdin.write_all(lines.as_bytes());
    // It reads until the server closes: `quit` has it do so.
    let output = client.wait_with_output().expect("an end");
    drop(stdin);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

const LINES: &str = "set key 0 0 5\r\nhello\r\nget key\r\nquit\r\n";
const ANSWERS: &str = "STORED\r\nVALUE key 0 5\r\nhello\r\nEND\r\n";

const PYTHON: &str = "
import socket, ssl, sys
host, port = sys.argv[1].rsplit(':', 1)
context = ssl.create_default_context(cafile=sys.argv[2])
value = bytes(range(256)) * 3900
with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host) as s:
    f = s.makefile('rwb')
    f.write(b'set large 0 0 %d\\r\\n%s\\r\\n' % (len(value), value))
    f.write(b'get large\\r\\n' * 20)
    f.flush()
    assert f.readline() == b'STORED\\r\\n'
    for _ in range(20):
        assert f.readline() == b'VALUE large 0 %d\\r\\n' % len(value)
        assert f.read(len(value) + 2) == value + b'\\r\\n' and f.readline() == b'END\\r\\n'
    version = s.version()
    # It says that it will send nothing more, and waits for the server to say the same.
    s.unwrap().close()
    print(version)
";

#[test]
fn openssl_and_python_speak_to_it_encrypted_and_a_listener_may_stay_plain() {
    if !is_there("openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = identity(folder.path());
    let suboptions = format!("ssl_chain_cert={},ssl_key={}", certificate.display(), key.display());
    // Memcached's way, with a listener that stays plain.
    let listen = "127.0.0.1:0,notls:127.0.0.1:0";
    let served = Served::start(&["-l", listen, "-Z", "-o", &suboptions, "-I", "2m"]);
    for version in ["-tls1_2", "-tls1_3"] {
        let said = s_client(served.named("memcached"), &certificate, version, LINES);
        assert_eq!(said, (true, ANSWERS.to_owned()), "{version}");
    }
    let plain = served.named("memcached2");
    let mut socket = std::net::TcpStream::connect(plain).expect("a connection");
    socket.write_all(b"get key\r\nstats settings\r\nquit\r\n").expect("sent");
    let text = std::io::read_to_string(socket).expect("text");
    assert!(text.starts_with("VALUE key 0 5\r\nhello\r\nEND\r\n"), "{text}");
    assert!(text.contains("STAT ssl_enabled yes\r\n"), "{text}");
    let output = Command::new("python3")
        .args(["-c", PYTHON, served.named("memcached")])
        .arg(&certificate)
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && output.stdout == b"TLSv1.3\n", "{said}");
        }
        Err(_) => assert!(!is_there("python3")),
    }
}

#[test]
fn clients_without_a_certificate_are_sent_away_where_one_is_required() {
    if !is_there("openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = identity(folder.path());
    let [path, key] = [&certificate, &key].map(|path| path.to_str().expect("UTF-8"));
    let own = ["--listen", "127.0.0.1:0", "--tls-cert", path, "--tls-key", key];
    let served = Served::start(&[&own[..], &["--tls-client-ca", path]].concat());
    let (_, said) = s_client(served.named("memcached"), &certificate, "-tls1_2", LINES);
    assert_eq!(said, "");
    let served = Served::start(&own);
    let said = s_client(served.named("memcached"), &certificate, "-tls1_2", LINES);
    assert_eq!(said, (true, ANSWERS.to_owned()));
    // The wrong key is said before anything is ready.
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["serve", "cache", "--listen", "127.0.0.1:0", "--tls-cert", key])
        .output()
        .expect("loadline runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("key.pem"), "{said}");
}

/// A certificate for 127.0.0.1 that is no authority's, and its key.
fn plain_identity(folder: &Path) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    (certificate, key)
}

/// What `loadline cache` prints, and complains of.
fn client(address: &str, trusted: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["cache", "--server", address, "--tls-ca"])
        .arg(trusted)
        .args(words)
        .output()
        .expect("loadline runs");
    let [out, complaint] = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    (output.status.code(), out, complaint)
}

#[test]
fn certificates_are_read_again_when_asked_for_and_useless_ones_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = plain_identity(folder.path());
    let old = folder.path().join("old.pem");
    std::fs::copy(&certificate, &old).expect("copied");
    let suboptions = format!("ssl_chain_cert={},ssl_key={}", certificate.display(), key.display());
    let listen = "127.0.0.1:0,notls:127.0.0.1:0";
    let served = Served::start(&["-l", listen, "-Z", "-o", &suboptions]);
    let (address, plain) = (served.named("memcached"), served.named("memcached2"));
    let refresh = || {
        let mut socket = std::net::TcpStream::connect(plain).expect("a connection");
        socket.write_all(b"refresh_certs\r\nquit\r\n").expect("sent");
        std::io::read_to_string(socket).expect("text")
    };
    let done = |said: (Option<i32>, String, String)| (said.0, said.1);
    assert_eq!(client(address, &certificate, &["set", "key", "value"]).0, Some(0));
    assert_eq!(done(client(address, &old, &["get", "key"])), (Some(0), "value".to_owned()));

    plain_identity(folder.path());
    assert_eq!(client(address, &certificate, &["get", "key"]).0, Some(1), "not read yet");
    assert_eq!(refresh(), "OK\r\n");
    assert_eq!(done(client(address, &certificate, &["get", "key"])), (Some(0), "value".to_owned()));
    let (code, _, complaint) = client(address, &old, &["get", "key"]);
    assert!(code == Some(1) && complaint.contains("--tls-ca"), "{complaint}");

    let kept = folder.path().join("kept.pem");
    std::fs::rename(&certificate, &kept).expect("renamed");
    std::fs::write(&certificate, "nothing").expect("written");
    let said = refresh();
    assert!(said.starts_with("Error ") && said.contains("certificate.pem"), "{said}");
    assert_eq!(done(client(address, &kept, &["get", "key"])), (Some(0), "value".to_owned()));
}
