//! `loadline rpc ping`: a trial over every carrier, each answer checked.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::served::{PROGRAM, Served, lines, rpc, said};

/// Tries again what a busy host may hide for a while: times, and shares of times.
fn at_last(mut is_so: impl FnMut() -> Result<(), String>) {
    let until = Instant::now() + Duration::from_secs(60);
    while let Err(why) = is_so() {
        assert!(Instant::now() < until, "{why}");
    }
}

#[test]
fn a_trial_over_every_carrier_has_exact_totals() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let server = Served::start(&["--unix", &path]);
    let at = server.address();
    for address in [
        "here:".to_owned(),
        "frames:".to_owned(),
        format!("pipe:exec {PROGRAM} serve --pipe"),
        format!("tcp:{at}"),
        format!("unix:{path}"),
        #[cfg(feature = "grpc")]
        format!("grpc://{at}"),
    ] {
        let out = rpc(&["ping", &address, "--count", "50", "--time", "60s", "--json"]);
        assert!(out.status.success(), "{address}: {}", said(&out));
        let trial = &lines(&out)[0];
        let number = |key: &str| trial[key].as_f64().unwrap_or_else(|| panic!("{key}: {trial}"));
        assert_eq!(number("samples"), 50.0);
        assert!(number("min_ns") > 0.0 && number("min_ns") <= number("median_ns"), "{trial}");
        assert!(number("median_ns") <= number("p99_ns") && number("p99_ns") <= number("max_ns"));
        let total = |at: usize| trial["totals"][at].as_i64().expect("a total");
        assert_eq!((total(1) - total(0)) as f64, number("calls"), "{trial}");
        assert!(number("allocated_bytes") >= number("allocations"), "{trial}");
        for side in ["here", "server"] {
            let cores = trial["cores"][side].as_array().expect("cores");
            assert!(!cores.is_empty(), "{side}: {trial}");
        }
        let out = rpc(&["ping", &address, "--count", "9", "--function", "echo", "--bytes", "70kB"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{address}: {}", said(&out));
        for words in [
            "9 samples with ",
            " evaluation",
            "Histogram: ",
            "Memory estimate: ",
            "Cores: ",
            "answers are right.",
        ] {
            assert!(text.contains(words), "{address}: {text}");
        }
    }
}

#[test]
fn a_trial_starts_its_own_server_on_the_cores_that_are_typed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let server = format!("exec {PROGRAM} serve --listen 127.0.0.1:0 --unix {path}");
    for address in [
        "tcp:".to_owned(),
        #[cfg(feature = "grpc")]
        "grpc://".to_owned(),
        format!("unix:{path}"),
    ] {
        let of = ["--count", "20", "--time", "60s", "--json", "--cpus", "0", "--server", &server];
        let out = rpc(&[&["ping", &address][..], &of].concat());
        assert!(out.status.success(), "{address}: {}", said(&out));
        let trial = &lines(&out)[0];
        assert_eq!(trial["totals"][0], 0, "a server of its own: {trial}");
        assert_eq!(trial["samples"], 20);
        assert_eq!(trial["cores"], serde_json::json!({ "here": [0], "server": [0] }), "{trial}");
    }
    let out = rpc(&["ping", "tcp:", "--server", "exec false"]);
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(said(&out).contains("has ended without a ready line"), "{}", said(&out));
}

#[test]
fn each_rung_within_a_process_has_exact_totals_and_frames_take_longer_than_the_function() {
    let rungs = ["direct:", "codec:", "table:", "here:", "frames:"].map(|address| {
        let out = rpc(&["ping", address, "--count", "500", "--time", "60s", "--json"]);
        assert!(out.status.success(), "{address}: {}", said(&out));
        let trial = lines(&out)[0].clone();
        let total = |at: usize| trial["totals"][at].as_i64().expect("a total");
        assert_eq!(total(1) - total(0), trial["calls"].as_i64().expect("calls"), "{trial}");
        trial["median_ns"].as_f64().expect("a time")
    });
    // A frame there and back is several times an addition, on any machine.
    assert!(rungs[0] < rungs[4], "{rungs:?}");
    let out = rpc(&["ping", "table:", "--function", "echo"]);
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
}

#[test]
fn two_small_writes_with_nagle_take_the_time_of_a_delayed_acknowledgement() {
    let server = Served::start(&[]);
    let address = format!("tcp:{}", server.address());
    let median = |more: &[&str]| {
        let args = [&["ping", &address, "--count", "25", "--time", "60s", "--json"], more].concat();
        let out = rpc(&args);
        assert!(out.status.success(), "{}", said(&out));
        lines(&out)[0]["median_ns"].as_f64().expect("a time") / 1e6
    };
    let planted = median(&["--writes", "struct", "--nagle"]);
    assert!(planted > 30.0, "{planted} ms");
    // One write has nothing to wait for, and several need not.
    for more in [["--writes", "buffer", "--nagle"].as_slice(), &["--writes", "field", "--quickack"]]
    {
        at_last(|| {
            let other = median(more);
            (other < 30.0).then_some(()).ok_or(format!("{more:?}: {other} ms, and {planted} ms"))
        });
    }
}

#[test]
fn what_is_typed_wrong_or_is_not_there_is_named() {
    for (args, code, words) in [
        (&["ping", "127.0.0.1:1"][..], 2, "tcp:HOST:PORT"),
        (&["ping", "unix:/no/such/socket"], 1, "cannot connect to unix:/no/such/socket"),
        (&["ping", "tcp:127.0.0.1:1"], 1, "refused"),
        (&["ping", "pipe:exit 3"], 1, "the server has closed the connection"),
        (&["ping", "here:", "--nagle"], 2, "tcp:"),
        (&["ping", "tcp:127.0.0.1:1", "--cpus", "0,1"], 2, "has to be started here"),
        (&["ping", "tcp:127.0.0.1:1", "--tls-ca", "none.pem"], 2, "--tls-ca is for grpc://"),
        (&["ping", "tcp:127.0.0.1:1", "-H", "x: 1"], 2, "own frames take one"),
        (&["ping", "here:", "--writes", "field"], 2, "are for own frames"),
        (&["ping", "direct:", "--nagle"], 2, "have no connection"),
        (&["ping", "table:", "--server", "exec false"], 2, "have no connection"),
        (&["ping", "here:", "--gzip"], 2, "--gzip is for grpc://"),
        (&["why", "here:", "--time", "0s"], 2, "more than nothing"),
        (&["ping", "grpc://127.0.0.1:1", "--writes", "field"], 2, "own frames"),
    ] {
        let out = rpc(args);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", said(&out));
        assert!(said(&out).contains(words), "{args:?}: {}", said(&out));
    }
    // Its server is this process; a host may have no core 1, which is another error.
    let out = rpc(&["ping", "here:", "--cpus", "0,1", "--count", "9"]);
    assert_ne!(out.status.code(), Some(2), "{}", said(&out));
}

#[test]
fn why_counts_what_a_call_does_and_names_nagle_where_it_is_planted() {
    let server = Served::start(&[]);
    let address = format!("tcp:{}", server.address());
    at_last(|| {
        let out = rpc(&["why", &address, "--writes", "field", "--nagle", "--time", "2s", "--json"]);
        assert!(out.status.success(), "{}", said(&out));
        let planted = &lines(&out)[0];
        assert_eq!(planted["writes"], 8.0, "seven fields of the header, and the message");
        let steps = planted["in_order"].as_array().expect("steps");
        let written: Vec<_> = steps.iter().map_while(|step| step["write"].as_u64()).collect();
        assert_eq!(written, [4, 1, 1, 2, 8, 4, 4, 10], "{planted}");
        let read: u64 = steps.iter().filter_map(|step| step["read"].as_u64()).sum();
        assert_eq!(read, 34, "{planted}");
        let cause = planted["cause"].as_str().expect("a cause");
        let words = "ms = Nagle + delayed acknowledgement: 8 writes per request";
        cause.contains(words).then_some(()).ok_or(planted.to_string())
    });
    let out = rpc(&["why", &address, "--time", "200ms", "--json"]);
    assert!(out.status.success(), "{}", said(&out));
    let plain = &lines(&out)[0];
    assert_eq!((&plain["writes"], &plain["reads"]), (&1.0.into(), &1.0.into()), "{plain}");
    assert_eq!(plain["write_bytes"], 34.0, "a header of 24 bytes, and the message");
    for (side, key) in [("here", "cpu_ns"), ("server", "cpu_ns"), ("server", "switches")] {
        assert!(plain[side][key].as_f64().is_some_and(|value| value > 0.0), "{side}: {plain}");
    }
    assert!(!plain["cause"].as_str().expect("a cause").contains("Nagle"), "{plain}");
    let of = |side: &serde_json::Value, key: &str| side[key].as_f64().expect("a time");
    let off = ["server_ns", "core_ns", "wake_up_ns"].map(|key| of(&plain["off"], key));
    let rest = of(plain, "mean_ns") - of(&plain["here"], "cpu_ns");
    assert!((off.iter().sum::<f64>() - rest.max(0.0)).abs() <= 1.0, "the whole of it: {plain}");
    let right = serde_json::json!([{ "write": 34 }, { "read": 34 }]);
    assert_eq!(plain["in_order"], right, "{plain}");
    assert!(plain["look_up_ns"].as_f64().is_some_and(|took| took > 0.0), "{plain}");
    for address in ["here:", &format!("pipe:exec {PROGRAM} serve --pipe"), &address] {
        let out = rpc(&["why", address, "--time", "50ms"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{address}: {}", said(&out));
        for words in ["context switches", "on no CPU", "There and back", "cache line ", "by number"]
        {
            assert!(text.contains(words), "{address}: {text}");
        }
    }
}

#[test]
fn why_names_nagle_where_this_side_waits_on_its_cpu() {
    at_last(|| {
        let planted = ["--writes", "struct", "--nagle", "--wait", "spin"];
        let found = found(&planted);
        if found["delayed_acks"].is_null() {
            testing::skip("this host's kernel doesn't count delayed acknowledgements");
            return Ok(());
        }
        let cause = found["cause"].as_str().expect("a cause");
        let words = "ms = Nagle + delayed acknowledgement: 2 writes per request.";
        cause.contains(words).then_some(()).ok_or(found.to_string())
    });
}

#[test]
fn a_server_that_hangs_ends_a_trial() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp:{}", listener.local_addr().expect("bound"));
    let server = Served::start(&[]);
    let upstream = server.socket();
    // It passes on the greetings and the first call, and then nothing more.
    let passing = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut server = std::net::TcpStream::connect(upstream).expect("the server");
        let mut back = (server.try_clone().expect("it"), client.try_clone().expect("it"));
        std::thread::spawn(move || std::io::copy(&mut back.0, &mut back.1));
        let mut buffer = [0; 4_096];
        for _ in 0..2 {
            let count = client.read(&mut buffer).expect("bytes");
            server.write_all(&buffer[..count]).expect("passed on");
        }
        // Until the client has given up.
        while client.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let out = rpc(&["ping", &address, "--time", "1s", "--connect-timeout", "5s"]);
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    assert!(said(&out).contains("deadline"), "{}", said(&out));
    passing.join().expect("it has ended");
}

/// Waits until a process has ended: it has been killed, and may still be on its way.
fn ends(pid: &str) {
    let has_ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z"))
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !has_ended() {
        assert!(Instant::now() < until, "{pid} is left");
        std::thread::yield_now();
    }
}

#[test]
fn what_a_command_has_started_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let address =
        format!("pipe:sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
    // It waits to the end of its time; what it starts has to be there before.
    for timeout in ["300ms", "3s", "30s"] {
        let out = rpc(&["ping", &address, "--connect-timeout", timeout]);
        assert_eq!(out.status.code(), Some(1), "{}", said(&out));
        if file.exists() {
            break;
        }
    }
    ends(std::fs::read_to_string(file).expect("a process").trim());
}

/// What `why` finds at a server of its own.
fn found(more: &[&str]) -> serde_json::Value {
    found_at("", more)
}

/// What it finds at one that is started with these arguments.
fn found_at(served: &str, more: &[&str]) -> serde_json::Value {
    let server = format!("exec {PROGRAM} serve --listen 127.0.0.1:0 {served}");
    let args = ["why", "tcp:", "--server", &server, "--time", "100ms", "--json"];
    let out = rpc(&[&args, more].concat());
    assert!(out.status.success(), "{more:?}: {}", said(&out));
    lines(&out)[0].clone()
}

#[test]
fn why_finds_each_cause_that_is_planted() {
    // Each shows by more than noise can: a place, a count, or a share of what it is part of.
    for (planted, words) in [
        (&["--cpus", "0"][..], "both ends on one core (0)"),
        (&["--wait", "spin"], "% of a core while idle (this side)"),
        (&["--allocate", "100000"], "allocations: 1000"),
        (&["--decode", "consumed"], "empty decode: decode returned 0 of 8 elements"),
        (&["--writes", "field"], "8 writes per request"),
        (&["--reads", "4"], "4 reads per answer"),
        (&["--writes", "struct", "--buffered", "--flush", "each"], "2 writes per request"),
    ] {
        at_last(|| {
            let found = found(planted);
            if planted[0] == "--cpus" {
                let line = &found["floors_ns"]["cache_line"];
                assert!(line.is_null(), "on one core neither can wait: {found}");
            }
            let causes = found["causes"].as_array().expect("causes");
            assert_eq!(found["cause"], causes[0]);
            let named = |part: &str| {
                let has_it = |cause: &&serde_json::Value| {
                    cause.as_str().is_some_and(|cause| cause.contains(part))
                };
                causes.iter().filter(has_it).count()
            };
            let is_right = OTHERS.iter().all(|other| {
                let is_planted = *other == "busy wait" && planted[0] == "--wait";
                named(other) == usize::from(words.contains(other) || is_planted)
            });
            (is_right && named(words) > 0).then_some(()).ok_or(format!("{planted:?}: {found}"))
        });
    }
}

/// Causes of which each row plants one at most.
const OTHERS: [&str; 6] =
    ["empty decode", "allocations", "Nagle", "busy wait", "writes per request", "reads per answer"];

#[test]
fn why_finds_what_is_planted_at_the_server() {
    for (served, writes) in [("--writes struct", 2.0), ("--writes field", 8.0)] {
        let found = found_at(served, &[]);
        let count = found["server_did"]["writes"].as_f64().expect("a count");
        assert!((writes - 0.1..writes + 0.1).contains(&count), "{served}: {found}");
        let causes = found["causes"].to_string();
        let words = format!("the server sends an answer by {writes} writes");
        assert!(causes.contains(&words), "{served}: {causes}");
        assert!(!causes.contains("per request"), "{served}: {causes}");
    }
    let words = "Nagle + delayed acknowledgement: 2 writes per request, and 2 of the server";
    at_last(|| {
        let found = found_at("--writes struct --nagle", &["--writes", "struct", "--nagle"]);
        let cause = found["cause"].as_str().expect("words");
        cause.contains(words).then_some(()).ok_or(found.to_string())
    });
}

#[test]
fn a_buffer_gathers_small_writes_and_reads_until_a_message_is_whole() {
    let found = found(&["--writes", "field", "--reads", "5", "--buffered"]);
    assert_eq!((&found["writes"], &found["reads"]), (&1.0.into(), &1.0.into()), "{found}");
    let server = Served::start(&[]);
    let address = format!("tcp:{}", server.address());
    for more in [&["--reads", "25"][..], &["--reads", "2"], &["--buffered"]] {
        // More than one read takes, and less than a field of a header.
        for bytes in ["0", "1", "200000"] {
            let of = ["--function", "echo", "--bytes", bytes, "--count", "9", "--time", "60s"];
            let out = rpc(&[&["ping", &address][..], &of, more].concat());
            assert!(out.status.success(), "{more:?} {bytes}: {}", said(&out));
        }
    }
    for (more, words) in [
        (&["--reads", "4", "--future", "spin"][..], "leave out --future"),
        (&["--flush", "each"], "--buffered"),
        (&["--reads", "1"], "2..=25"),
    ] {
        let out = rpc(&[&["ping", &address][..], more].concat());
        assert_eq!(out.status.code(), Some(2), "{more:?}: {}", said(&out));
        assert!(said(&out).contains(words), "{more:?}: {}", said(&out));
    }
}

#[test]
fn why_counts_both_sides_and_says_what_handing_over_takes() {
    let planted = found(&["--allocate", "100"]);
    // Each of them has 64 bytes.
    let allocated = |key: &str| planted[key].as_f64().unwrap_or_else(|| panic!("{key}: {planted}"));
    assert!(allocated("allocations") >= 100.0 && allocated("allocated_bytes") >= 6_400.0);
    let found = found(&["--future", "condvar"]);
    assert!(found["future_ns"].as_f64().is_some_and(|took| took > 0.0), "{found}");
    // One read and one write each.
    for key in ["reads", "writes"] {
        let count = found["server_did"][key].as_f64().expect("a count");
        assert!((0.9..1.2).contains(&count), "{key}: {found}");
    }
    assert!(found["server_did"]["system_calls"].as_f64().is_some_and(|calls| calls >= 1.9));
    assert_eq!(found["note"], serde_json::Value::Null);
    let text = rpc(&["why", "frames:", "--time", "50ms"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for words in ["its message encoded", "its answer decoded", "allocations", "Gbit/s"] {
        assert!(text.contains(words), "{text}");
    }
}

#[cfg(feature = "grpc")]
#[test]
fn why_counts_what_passes_over_grpc_and_says_what_it_does_not_measure() {
    use serde_json::Value::Null;

    let server = Served::start(&[]);
    let address = format!("grpc://{}", server.address());
    let out = rpc(&["why", &address, "--time", "100ms", "--json"]);
    assert!(out.status.success(), "{}", said(&out));
    let found = &lines(&out)[0];
    let of = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
    // A head and a message leave together, more than the 34 bytes of own frames.
    assert!((1.0..1.5).contains(&of("writes")) && of("write_bytes") > 34.0, "{found}");
    assert!(of("reads") >= 1.0 && of("read_bytes") > 34.0, "{found}");
    let steps = found["in_order"].as_array().expect("steps");
    let sum = |kind: &str| steps.iter().filter_map(|step| step[kind].as_u64()).sum::<u64>();
    assert!(sum("write") > 34 && sum("read") > 34, "{found}");
    assert_eq!((&found["future_ns"], &found["system_calls"]), (&Null, &Null), "{found}");
    let text = rpc(&["why", &address, "--time", "50ms"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("Not measured over gRPC: this side's system calls"), "{text}");
}

#[test]
fn a_server_that_names_another_process_is_not_believed() {
    // What it says comes by another process, which has this end of the connection.
    let server = Served::start(&[]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp:{}", listener.local_addr().expect("bound"));
    let upstream = server.socket();
    let passing = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut server = std::net::TcpStream::connect(upstream).expect("the server");
        for stream in [&client, &server] {
            stream.set_nodelay(true).expect("set");
        }
        let mut back = (server.try_clone().expect("it"), client.try_clone().expect("it"));
        let back = std::thread::spawn(move || std::io::copy(&mut back.0, &mut back.1));
        let passed = std::io::copy(&mut client, &mut server);
        server.shutdown(std::net::Shutdown::Write).expect("it ends");
        drop((passed, back.join().expect("it ends")));
    });
    let out = rpc(&["why", &address, "--time", "50ms", "--json"]);
    assert!(out.status.success(), "{}", said(&out));
    let found = &lines(&out)[0];
    assert_eq!(found["server"], serde_json::Value::Null, "{found}");
    assert_eq!(found["server_did"], serde_json::Value::Null, "{found}");
    assert!(found["note"].as_str().is_some_and(|note| note.contains("doesn't show that one")));
    assert_eq!(found["whole"], false, "{found}");
    // On a busy host this side may be ready, and not on its CPU, while it waits: that is its own.
    let causes = found["causes"].as_array().expect("causes").iter();
    let causes: Vec<_> = causes.filter_map(serde_json::Value::as_str).collect();
    let is_theirs = |cause: &&str| {
        !cause.starts_with("busy wait") && (cause.contains("on no CPU") || cause.contains("core"))
    };
    assert!(!causes.iter().any(is_theirs), "{causes:?}");
    passing.join().expect("it ends");
}

#[test]
fn a_server_that_has_calls_of_others_has_no_figures_of_a_call() {
    let server = Served::start(&[]);
    let address = format!("tcp:{}", server.address());
    let mut other = std::process::Command::new(PROGRAM);
    other.args(["rpc", "ping", &address, "--function", "echo", "--time", "90s"]);
    let other = other.args(["--count", "10000000"]).stdout(std::process::Stdio::null());
    let mut other = other.spawn().expect("it starts");
    at_last(|| {
        let out = rpc(&["why", &address, "--time", "100ms", "--json"]);
        assert!(out.status.success(), "{}", said(&out));
        let found = &lines(&out)[0];
        let is_noted = found["note"].as_str().is_some_and(|note| note.contains("calls of others"));
        let is_right = is_noted && found["server"].is_null() && found["server_did"].is_null();
        is_right.then_some(()).ok_or(found.to_string())
    });
    other.kill().expect("killed");
    other.wait().expect("it ends");
}

#[test]
fn a_server_that_a_command_has_started_ends_with_it_even_when_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let server = format!(
        "{PROGRAM} serve --listen 127.0.0.1:0 & echo $! > {0}.new; mv {0}.new {0}; wait",
        file.display()
    );
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["rpc", "ping", "tcp:", "--time", "60s", "--count", "10000000"]);
    let mut child = command.args(["--server", &server]).spawn().expect("it starts");
    let until = Instant::now() + Duration::from_secs(50);
    while !file.exists() {
        assert!(Instant::now() < until, "no server");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("it ends");
    ends(std::fs::read_to_string(&file).expect("a process").trim());
}

#[test]
fn an_interrupted_trial_shows_what_it_has() {
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["rpc", "ping", "here:", "--time", "60s", "--count", "10000000"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let pid = child.id().to_string();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        // SIGINT is 2.
        u64::from_str_radix(caught.trim(), 16).expect("a mask") & 2 != 0
    };
    let until = Instant::now() + Duration::from_secs(50);
    while !catches() {
        assert!(Instant::now() < until, "it catches no signal");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("it runs").success());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(130), "{}", said(&out));
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains(" sample") && text.contains("(median)"), "{text}");
}

/// The cores that a thread may run on, as the system lists them.
fn cores(status: &std::path::Path) -> Option<String> {
    let status = std::fs::read_to_string(status).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

#[test]
fn the_thread_that_reads_answers_runs_where_its_client_does() {
    let all = cores("/proc/self/status".as_ref()).expect("cores");
    if !all.starts_with("0-") && !all.starts_with("0,1") {
        return testing::skip("the cores 0 and 1 may not be used");
    }
    let server = format!("exec {PROGRAM} serve --listen 127.0.0.1:0 --threads 1");
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["rpc", "ping", "tcp:", "--time", "60s", "--count", "10000000"]);
    command.args(["--cpus", "1,0", "--future", "condvar", "--server", &server]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let until = Instant::now() + Duration::from_secs(50);
    let reader = loop {
        assert!(Instant::now() < until, "no thread reads");
        let tasks = std::fs::read_dir(&tasks).expect("threads").flatten();
        let is_reader = |task: &std::path::PathBuf| {
            let name = std::fs::read_to_string(task.join("comm"));
            name.is_ok_and(|name| name.trim() == "rpc-reader")
        };
        match tasks.map(|task| task.path()).find(is_reader) {
            Some(task) => break cores(&task.join("status")),
            None => std::thread::yield_now(),
        }
    };
    let main = cores(format!("{tasks}/{}/status", child.id()).as_ref());
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert_eq!((reader.as_deref(), main.as_deref()), (Some("1"), Some("1")));
}
