//! Calls over MPI, under mpirun.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::peers::on_path;
use crate::served::{PROGRAM, lines, rpc, said};

/// Runs the client as this number of ranks; without mpirun the test is skipped.
fn ranks(count: usize, args: &[&str]) -> Option<Output> {
    groups(&[(count, args)])
}

/// Runs ranks that are started in several ways.
fn groups(all: &[(usize, &[&str])]) -> Option<Output> {
    let mut command = Command::new(on_path("mpirun")?);
    // Two that start at once fail where one makes, and the other removes, the folder of both.
    let folder = tempfile::tempdir().expect("a folder");
    command.env("TMPDIR", folder.path());
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
    for (at, (count, args)) in all.iter().enumerate() {
        command.args([":"].iter().take(at)).arg("-np").arg(count.to_string());
        command.args([PROGRAM, "rpc"]).args(*args);
    }
    Some(testing::output(&mut command, b""))
}

#[test]
fn ranks_that_are_started_otherwise_are_named_by_the_one_that_asks() {
    for (address, other, says) in [
        ("mpi:", "mpi:1", "rank 1 is loadline"),
        ("mpi:2", "mpi:1", "rank 2 is loadline"),
        // It asks none, which no other rank has to know.
        ("mpi:3", "mpi:1", "there is no rank 3 to ask, but 1 to 2"),
    ] {
        let (asks, serves) = (["ping", address, "--wait", "spin"], ["ping", other]);
        let Some(out) = groups(&[(1, &asks), (2, &serves)]) else { return };
        assert_eq!(out.status.code(), Some(1), "{address}: {}", said(&out));
        assert!(said(&out).contains(says), "{address}: {}", said(&out));
        assert!(out.stdout.is_empty(), "{address}");
    }
    let (asks, serves) = (["ping", "mpi:", "--wait", "spin"], ["ping", "mpi:"]);
    let Some(out) = groups(&[(1, &asks), (1, &serves)]) else { return };
    let words = said(&out);
    for part in [" rpc ping mpi:; this one is", "mpi: --wait spin: start all ranks alike"] {
        assert!(words.contains(part), "{words}");
    }
    let [asks, serves] = ["authorization: Bearer SECRET", "authorization: Bearer TOKEN"]
        .map(|metadata| ["ping", "mpi:", "-H", metadata]);
    let Some(out) = groups(&[(1, &asks), (1, &serves)]) else { return };
    let words = said(&out);
    assert!(words.contains("rank 1 differs in metadata (-H)"), "{words}");
    assert!(!words.contains("SECRET") && !words.contains("TOKEN"), "{words}");
}

#[test]
fn two_ranks_have_exact_totals_however_they_wait() {
    for wait in ["spin", "hybrid", "park"] {
        let args = ["ping", "mpi:", "--count", "200", "--time", "120s", "--json", "--wait", wait];
        let Some(out) = ranks(2, &args) else { return };
        assert!(out.status.success(), "{wait}: {}", said(&out));
        let all = lines(&out);
        assert_eq!(all.len(), 1, "only rank 0 prints: {all:?}");
        let total = |at: usize| all[0]["totals"][at].as_i64().expect("a total");
        assert_eq!(all[0]["samples"], 200);
        assert_eq!((total(0), total(1)), (0, all[0]["calls"].as_i64().expect("calls")), "{wait}");
    }
}

#[test]
fn a_rank_that_hangs_ends_the_other_with_an_error_in_time() {
    let Some(mpirun) = on_path("mpirun") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("1");
    let mut command = Command::new(mpirun);
    command.env("TMPDIR", folder.path()).env("PIDS", folder.path());
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]);
    let script = "echo $$ > $PIDS/$OMPI_COMM_WORLD_RANK; exec \"$@\"";
    command.args(["sh", "-c", script, "sh", PROGRAM, "rpc", "ping", "mpi:", "--wait", "spin"]);
    command.args(["--time", "300s", "--count", "10000000", "--timeout", "2s"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let limit = testing::Limit::of(&child);
    // MPI begins within a fraction of a second of CPU time; what takes more of it are calls.
    let stat = || {
        let pid = std::fs::read_to_string(&file).ok()?.trim().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // In user mode and in the kernel: who spins may give way to others.
        let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        (ticks > 200).then_some(pid)
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(200);
    let pid = loop {
        if let Some(pid) = stat() {
            break pid;
        }
        assert!(std::time::Instant::now() < until, "rank 1 does nothing");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let stopped = Command::new("kill").args(["-STOP", &pid]).status().expect("it runs");
    assert!(stopped.success());
    let out = child.wait_with_output().expect("it ends");
    drop(limit);
    assert!(!out.status.success(), "{}", said(&out));
    assert!(said(&out).contains("deadline of the call has passed"), "{}", said(&out));
    assert!(said(&out).contains("rank 1 doesn't end with this one within 2 s"), "{}", said(&out));
}

#[test]
fn three_ranks_are_a_client_and_two_servers_of_which_one_is_asked() {
    for address in ["mpi:1", "mpi:2"] {
        // More than what MPI passes at once, and than all that may be under way.
        for bytes in ["0", "5000", "70000", "1000000"] {
            let of = ["--function", "echo", "--bytes", bytes, "--count", "9", "--time", "20s"];
            let Some(out) = ranks(3, &[&["ping", address][..], &of].concat()) else { return };
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(out.status.success(), "{address} {bytes}: {}", said(&out));
            assert!(text.contains("answers are right."), "{address} {bytes}: {text}");
        }
    }
    let Some(out) = ranks(3, &["ping", "mpi:3"]) else { return };
    assert!(!out.status.success());
    assert!(said(&out).contains("no rank 3 to ask, but 1 to 2"), "{}", said(&out));
    let Some(out) = ranks(1, &["ping", "mpi:"]) else { return };
    assert!(!out.status.success());
    assert!(said(&out).contains("no other rank"), "{}", said(&out));
}

#[test]
fn why_sees_both_ranks_and_names_the_one_that_spins() {
    let args = ["why", "mpi:", "--time", "100ms", "--json", "--wait", "spin"];
    let Some(out) = ranks(2, &args) else { return };
    assert!(out.status.success(), "{}", said(&out));
    let found = &lines(&out)[0];
    assert_eq!(found["note"], serde_json::Value::Null, "{found}");
    assert!(found["server"]["cpu_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{found}");
    for key in ["reads", "writes"] {
        assert_eq!(found[key], 1.0, "{found}");
    }
    let causes = found["causes"].to_string();
    for side in ["this side", "the server"] {
        assert!(causes.contains(&format!("of a core while idle ({side})")), "{causes}");
    }
}

/// Runs the client with a library of this name, which is another file.
fn with(library: Option<&Path>) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("libmpi.so.40");
    match library {
        Some(library) => symlink(library, place).expect("a link"),
        None => std::fs::write(place, "no library").expect("a file"),
    }
    let mut command = Command::new(PROGRAM);
    command.args(["rpc", "ping", "mpi:"]).env("LD_LIBRARY_PATH", folder.path());
    let out = testing::output(&mut command, b"");
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    said(&out)
}

#[test]
fn a_library_that_is_not_there_or_is_another_is_named_with_what_brings_it() {
    let words = with(None);
    for part in ["cannot open libmpi.so.40", "apt-get install openmpi-bin"] {
        assert!(words.contains(part), "{words}");
    }
    // Any other library that this process has.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("they are there");
    let other = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
    let other = other.filter(|path| path.contains("/libc.so")).map(Path::new).next();
    let Some(other) = other else { return testing::skip("this host's libc is another".to_owned()) };
    let words = with(Some(other));
    assert!(words.contains("isn't Open MPI's (it has no ompi_mpi_comm_world)"), "{words}");
}

#[test]
fn what_is_typed_wrong_or_started_without_mpirun_is_named() {
    for (args, words) in [
        (&["ping", "mpi:0"][..], "names no carrier"),
        (&["ping", "mpi:", "--future", "condvar"], "--future is for"),
        (&["ping", "mpi:", "--server", "true"], "mpirun starts them"),
        (&["ping", "mpi:", "--nagle"], "for tcp: addresses"),
    ] {
        let out = rpc(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", said(&out));
        assert!(said(&out).contains(words), "{args:?}: {}", said(&out));
    }
    if on_path("mpirun").is_some() {
        let out = rpc(&["ping", "mpi:"]);
        assert_eq!(out.status.code(), Some(1));
        assert!(said(&out).contains("no rank of a job: start it by `mpirun"), "{}", said(&out));
    }
}
