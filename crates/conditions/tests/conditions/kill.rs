//! A server that is killed while clients insert: what was acknowledged is there afterwards.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use conditions::model::MAX_TIME;
use conditions::server::ConditionsServer;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::served::{client, folder, serve_sealing};

/// Where the data of the server in the other process lies.
const DATA: &str = "CONDITIONS_TEST_DATA";

/// How often it is killed, 10 times without this; and the seed of when.
const ROUNDS: &str = "CONDITIONS_KILLS";
const SEED: &str = "CONDITIONS_SEED";

const CLIENTS: u32 = 4;

/// Not a test: what the process that is killed runs.
#[test]
#[ignore = "it is run by the test below, in a process of its own"]
fn serve_until_killed() {
    let Some(data) = std::env::var_os(DATA) else { return };
    // Sealing is under way most of the time.
    let server = serve_sealing(data.as_ref(), 2_000);
    serve_on(&server)
}

pub(crate) struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL; it may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This program, which is to run a test that serves.
pub(crate) fn program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// Says where a server is to whoever has started this process, and stays until it is killed.
pub(crate) fn serve_on(server: &ConditionsServer) -> ! {
    println!("\nREADY {}", server.addresses()[0]);
    loop {
        std::thread::park();
    }
}

pub(crate) fn start(data: &std::path::Path) -> (Killed, SocketAddr) {
    start_as(program("kill::serve_until_killed").env(DATA, data))
}

/// Starts a process that says where it serves.
pub(crate) fn start_as(command: &mut Command) -> (Killed, SocketAddr) {
    let child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut killed = Killed(child);
    let lines = BufReader::new(killed.0.stdout.take().expect("a pipe")).lines();
    let ready = lines.map_while(Result::ok).find_map(|line| {
        line.strip_prefix("READY ").map(|address| address.parse().expect("an address"))
    });
    (killed, ready.expect("a server"))
}

/// How many insertions a channel has. The n-th is one of [n, n + 1), and of [n, open), which the
/// next one cuts, in another folder; both have the value n.
fn check(at: SocketAddr, channel: u32) -> u64 {
    let counts = ["/f", "/open"].map(|folder| {
        let asked = [("folder", folder.to_owned()), ("channels", channel.to_string())];
        let found = client(at).get_json("/browse", &asked).expect("an answer");
        let objects = found["objects"].as_array().expect("a list");
        for (number, object) in objects.iter().enumerate() {
            assert_eq!(object["since"], json!(number), "channel {channel} has a gap");
            let is_last = folder == "/open" && number + 1 == objects.len();
            let until = if is_last { MAX_TIME } else { number as u64 + 1 };
            assert_eq!(object["until"], json!(until));
            assert_eq!(object["records"], json!([[number as f64]]));
        }
        objects.len() as u64
    });
    assert_eq!(counts[0], counts[1], "half of an insertion is there");
    counts[0]
}

/// Inserts one after another, and says when each is acknowledged.
fn insert_until_killed(at: SocketAddr, channel: usize, count: &AtomicU64, acknowledged: impl Fn()) {
    let client = client(at);
    loop {
        let number = count.load(Relaxed);
        let batch = |folder: &str, until: u64| {
            let object = json!({
                "channel": channel, "since": number, "until": until, "values": [number],
            });
            json!({ "folder": folder, "objects": [object] })
        };
        let both = [batch("/f", number + 1), batch("/open", MAX_TIME)];
        if client.post("/objects", &json!({ "batches": both })).is_err() {
            return;
        }
        count.store(number + 1, Relaxed);
        acknowledged();
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_nothing_in_halves() {
    let rounds = std::env::var(ROUNDS).map_or(10, |text| text.parse().expect("a number"));
    let seed = std::env::var(SEED).map_or(3, |text| text.parse().expect("a number"));
    println!("{SEED}={seed}");
    let folder_of_data = tempfile::tempdir().expect("a folder");
    let data = folder_of_data.path();
    let mut random = SmallRng::seed_from_u64(seed);
    let acknowledged: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    for round in 0..=rounds {
        let (killed, at) = start(data);
        if round == 0 {
            for path in ["/f", "/open"] {
                folder(at, path, "single");
            }
        }
        for (channel, count) in acknowledged.iter().enumerate() {
            let there = check(at, channel as u32);
            let known = count.swap(there, Relaxed);
            // One more may have been made whose answer was lost.
            assert!((known..=known + 1).contains(&there), "{there} of {known} in round {round}");
        }
        if round == rounds {
            break;
        }
        let (made, enough) = (AtomicU64::new(0), random.random_range(1..60));
        // In every other round at any time, whatever is done then.
        let enough = if round % 2 == 0 { enough } else { 1 };
        let then = Duration::from_micros(match round % 2 {
            0 => 0,
            _ => random.random_range(0..60_000),
        });
        let (reached, is_reached) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // Or no client goes on.
                let _ = is_reached.recv();
                std::thread::sleep(then);
                drop(killed);
            });
            for (channel, count) in acknowledged.iter().enumerate() {
                let (made, reached) = (&made, reached.clone());
                scope.spawn(move || {
                    insert_until_killed(at, channel, count, || {
                        if made.fetch_add(1, Relaxed) + 1 == enough {
                            // While the others are in the middle of theirs.
                            let _ = reached.send(());
                        }
                    });
                });
            }
            drop(reached);
        });
    }
    let total: u64 = acknowledged.iter().map(|count| count.load(Relaxed)).sum();
    assert!(total >= rounds, "{total} insertions");
    println!("{rounds} kills, {total} insertions: none lost, none in halves");
}
