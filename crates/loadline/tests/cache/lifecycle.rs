//! The life of `loadline serve cache`: its user, its signals, its files, and what it refuses.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command, Output};

use crate::served::{Served, serve};

fn signal(served: &Served, name: &str) {
    let process = served.child.id().to_string();
    assert!(Command::new("kill").args([name, &process]).status().expect("kill runs").success());
}

/// Reads a log up to a line that holds `text`.
fn logs(log: &mut BufReader<ChildStderr>, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(log.read_line(&mut line).expect("a log") > 0, "it never logged {text:?}");
    }
}

fn log(served: &mut Served) -> BufReader<ChildStderr> {
    BufReader::new(served.child.stderr.take().expect("a pipe"))
}

/// That it ends with code 2 and says this.
fn refuses(arguments: &[&str], said: &str) {
    let Output { status, stderr, .. } = serve(arguments).output().expect("loadline runs");
    let text = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(2) && text.contains(said), "{text}");
}

#[test]
fn what_it_cannot_mean_is_refused_with_what_to_write() {
    refuses(&["--memory", "10"], "write 10MiB");
    refuses(&["-u", "no-such-user", "-l", "127.0.0.1:0"], "no such user");
    refuses(&["--listen", "0.0.0.0:0"], "--public");
    refuses(&["-l", "127.0.0.1:0", "--metrics", "0.0.0.0:0"], "--public");
    let version = serve(&["-V"]).output().expect("loadline runs");
    let text = String::from_utf8_lossy(&version.stdout);
    assert!(version.status.success() && text.contains(" 1.6.18-loadline-"), "{text}");
}

#[test]
fn what_strangers_can_reach_is_warned_of() {
    let mut served = Served::start(&["-l", "0.0.0.0:0", "-U", "same"]);
    let mut log = log(&mut served);
    logs(&mut log, "-l 0.0.0.0:0 can be reached from other machines");
    logs(&mut log, "UDP at 0.0.0.0:0 can be reached from other machines");
    assert!(served.stop());
}

#[test]
fn a_hangup_reads_accounts_again_and_bad_ones_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let accounts = folder.path().join("accounts");
    std::fs::write(&accounts, "ada:first\n").expect("written");
    let path = accounts.to_str().expect("UTF-8");
    let mut served = Served::start(&["-l", "127.0.0.1:0", "-Y", path]);
    let mut log = log(&mut served);
    let signs_in = |served: &Served, password: &str| {
        let mut socket = TcpStream::connect(served.address()).expect("a connection");
        let data = format!("ada {password}");
        write!(socket, "set auth 0 0 {}\r\n{data}\r\n", data.len()).expect("sent");
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).expect("an answer");
        line == "STORED\r\n"
    };
    assert!(signs_in(&served, "first"));
    std::fs::write(&accounts, "ada:second\n").expect("written");
    signal(&served, "-HUP");
    logs(&mut log, "accounts were read again");
    assert!(signs_in(&served, "second") && !signs_in(&served, "first"));
    std::fs::write(&accounts, "nonsense\n").expect("written");
    signal(&served, "-HUP");
    logs(&mut log, "accounts stay as they were");
    assert!(signs_in(&served, "second"));
}

#[test]
fn sigusr1_ends_it_in_good_order_as_it_ends_memcached() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pid, ports] = ["pid", "ports"].map(|name| folder.path().join(name));
    let mut command =
        serve(&["-l", "127.0.0.1:0", "-U", "same", "-P", pid.to_str().expect("UTF-8")]);
    command.env("MEMCACHED_PORT_FILENAME", &ports);
    let mut served = Served::spawn(command);
    let port = served.address().rsplit_once(':').expect("a port").1.to_owned();
    let text = std::fs::read_to_string(&ports).expect("read");
    assert_eq!(text, format!("TCP INET: {port}\nUDP INET: {port}\n"));
    assert!(pid.exists());
    signal(&served, "-USR1");
    assert_eq!(served.child.wait().expect("an end").code(), Some(0));
    assert!(!pid.exists());
}

#[test]
fn valgrind_can_look_at_it() {
    if testing::program("valgrind").is_none() {
        return;
    }
    let plain = serve(&["-l", "127.0.0.1:0"]);
    let mut command = Command::new("valgrind");
    command.arg("--tool=none").arg("--quiet").arg(plain.get_program()).args(plain.get_args());
    let served = Served::spawn(command);
    assert!(served.ask(&["set", "key", "value"]).status.success());
    assert!(served.stop());
}
