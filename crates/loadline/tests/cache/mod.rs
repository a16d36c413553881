//! `loadline serve cache`, from outside: memcached's command line, Unix sockets, datagrams.

mod lifecycle;
mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::served::Served;

#[test]
fn memcacheds_options_are_taken_and_what_means_nothing_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, pid) = (folder.path().join("cache.sock"), folder.path().join("cache.pid"));
    let (socket, pid) = (socket.to_str().expect("UTF-8"), pid.to_str().expect("UTF-8"));
    // Root becomes nobody, who makes the file of the process id and removes it.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).expect("changed");
    let line =
        ["-k", "-p", "0", "-s", socket, "-m", "64", "-t", "2", "-u", "nobody", "-P", pid, "-A"];
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
    assert!(said.contains("-k is accepted for compatibility"), "{said}");
    assert!(!std::path::Path::new(pid).exists() && !std::path::Path::new(socket).exists());
}

#[test]
fn options_may_be_said_again_and_small_memories_take_smaller_items() {
    let twice = ["-l", "127.0.0.1:0", "-m", "64", "-m", "4", "-t", "9", "-t", "1"];
    let served = Served::start(&[&twice[..], &["-o", "no_chunked_items"]].concat());
    let said = served.ask(&["stats", "settings"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let of = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    let told = ["maxbytes", "item_size_max", "num_threads"].map(of);
    assert_eq!(told, ["4194304", "524288", "1"].map(|text| Some(text.to_owned())));
}

#[test]
fn more_memory_than_the_host_has_is_warned_of() {
    for (megabytes, is_warned) in [("99999999", true), ("64", false)] {
        let mut served = Served::start(&["-l", "127.0.0.1:0", "-m", megabytes]);
        let mut stderr = served.child.stderr.take().expect("a pipe");
        assert!(served.stop(), "it serves all the same");
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("text");
        let warned = said.contains("95.4 TiB of memory are more than this");
        assert_eq!(warned, is_warned, "{megabytes}: {said}");
    }
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
            .args(["serve", "cache", "-l", "127.0.0.1:0"])
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
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("text");
    assert!(page.starts_with("HTTP/1.0 200 OK\r\n") && page.contains("\ncache_cmd_set_total 1\n"));
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

#[test]
fn the_client_asks_all_that_a_cache_can_be_asked() {
    let served = Served::start(&["--listen", "127.0.0.1:0"]);
    let ask = |arguments: &[&str], code: i32| {
        let output = served.ask(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    };
    assert_eq!(ask(&["set", "key", "a", "--if", "present"], 1), "not stored\n");
    assert_eq!(ask(&["set", "key", "b", "--if", "absent"], 0), "stored\n");
    assert_eq!(ask(&["set", "key", "c", "--if", "behind"], 0), "stored\n");
    assert_eq!(ask(&["set", "key", "a", "--if", "before"], 0), "stored\n");
    assert_eq!(ask(&["get", "key"], 0), "abc\n");
    assert_eq!(ask(&["get", "key", "--raw"], 0), "abc");
    let gets = ask(&["gets", "key", "--json"], 0);
    let gets: serde_json::Value = serde_json::from_str(&gets).expect("JSON");
    let cas = gets["items"][0]["cas"].to_string();
    assert_eq!(ask(&["set", "key", "7", "--cas", &cas], 0), "stored\n");
    assert_eq!(ask(&["set", "key", "8", "--cas", &cas], 1), "changed meanwhile\n");
    assert_eq!(ask(&["incr", "key", "3"], 0), "10\n");
    assert_eq!(ask(&["decr", "key", "99", "--json"], 0), "{\"number\":0,\"schema\":1}\n");
    assert_eq!(ask(&["incr", "other"], 1), "not there\n");
    assert_eq!(ask(&["touch", "key", "1000"], 0), "touched\n");
    assert_eq!(ask(&["touch", "other", "1000"], 1), "not there\n");
    let dump: serde_json::Value =
        serde_json::from_str(&ask(&["dump", "--json"], 0)).expect("one item");
    assert_eq!((&dump["key"], &dump["size"]), (&"key".into(), &5.into()), "{dump}");
    assert!(ask(&["stats", "evictions"], 0).contains("policy"));
    assert_eq!(ask(&["flush"], 0), "flushed\n");
    assert_eq!(ask(&["dump", "--json"], 0), "");
    for (arguments, said) in
        [(&["dump"][..], "the cache has no keys\n"), (&["stats", "reset"], "counts start again\n")]
    {
        let output = served.ask(arguments);
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b""[..], said.as_bytes()));
    }
    assert_eq!(ask(&["delete", "key", "--json"], 1), "{\"deleted\":false,\"schema\":1}\n");
    let refused = served.ask(&["watch", "everything"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the server says: ERROR"));
}

#[test]
fn the_client_watches_what_happens_and_says_who_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let accounts = folder.path().join("accounts");
    std::fs::write(&accounts, "me:secret\n").expect("written");
    let accounts = accounts.to_str().expect("UTF-8");
    let served = Served::start(&["--listen", "127.0.0.1:0", "--auth-file", accounts]);
    assert!(!served.ask(&["set", "key", "value"]).status.success());
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["cache", "--server", served.address(), "--auth-file", accounts])
        .args(["watch", "mutations", "connevents", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("loadline runs");
    let mut lines = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
    // Until it watches, nothing is told: others come and go meanwhile.
    let stored = std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                served.ask(&["set", "key", "value", "--auth-file", accounts]);
            }
        });
        let stored = lines.by_ref().map(|line| line.expect("a line")).find(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            line["type"] == "item_store"
        });
        drop(stop);
        stored
    });
    assert!(stored.is_some_and(|line| line.contains("\"key\":\"key\"")));
    let _ = watcher.kill();
    let _ = watcher.wait();
}

#[test]
fn a_cache_that_hangs_up_and_a_disk_that_is_full_are_errors_of_the_client() {
    // It hangs up in the middle of the value, which breaks the client's pipe.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let hangs_up = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        socket.read_exact(&mut [0; 64]).expect("some of it");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let value = folder.path().join("value");
    std::fs::write(&value, vec![b'v'; 64 << 20]).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["cache", "--server", &address, "set", "key", "-"])
        .stdin(std::fs::File::open(&value).expect("the value"))
        .output()
        .expect("loadline runs");
    hangs_up.join().expect("it has hung up");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!output.stderr.is_empty());

    let served = Served::start(&["--listen", "127.0.0.1:0"]);
    assert!(served.ask(&["set", "greeting", "hello"]).status.success());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let dump = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["cache", "--server", served.address(), "dump"])
        .stdout(full)
        .output()
        .expect("loadline runs");
    assert_eq!(dump.status.code(), Some(1), "{dump:?}");
    assert!(served.stop());
}

#[test]
fn with_fewer_descriptors_than_connections_one_too_many_is_refused_and_the_others_go_on() {
    let exe = env!("CARGO_BIN_EXE_loadline");
    let line = format!("ulimit -n 100; exec {exe} serve cache --listen 127.0.0.1:0 -c 1000");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::null());
    let mut served = Served::spawn(command);
    let connect = || std::net::TcpStream::connect(served.address()).expect("a connection");
    let mut clients: Vec<_> = (0..100).map(|_| connect()).collect();
    let mut answers = clients.iter_mut().map(|client| {
        // One that is refused may be closed already.
        let _ = client.write_all(b"version\r\n");
        let mut line = String::new();
        BufReader::new(client).read_line(&mut line).expect("an answer");
        line
    });
    let served_ones = answers.by_ref().take_while(|line| line.starts_with("VERSION")).count();
    assert!((20..60).contains(&served_ones), "{served_ones}");
    assert!(answers.all(|line| line.starts_with("ERROR Too many open connections")));
    drop(clients);
    let mut stderr = served.child.stderr.take().expect("a pipe");
    assert!(served.stop());
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    assert!(said.contains(&format!("there is room for {served_ones} connections")), "{said}");
}
