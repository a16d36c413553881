//! Synchronisation: a client that follows by what has changed has what a new client gets.

use std::path::Path;
use std::process::Command;

use crate::definition::{PYTHON, has_ecflow};
use crate::place::Place;
use crate::served::Served;

/// The environment variable with the seed; without it the seed is another each time.
const SEED: &str = "WORKFLOW_SEED";

fn seed() -> u64 {
    let given = std::env::var(SEED).map(|text| text.parse().expect("a number"));
    let seed = given.unwrap_or_else(|_| u64::from(std::process::id()));
    println!("{SEED}={seed}");
    seed
}

/// Loads the definition, begins it without jobs, and has the script send commands and compare.
/// Returns how many syncs brought changes and not the whole, and what it wrote.
fn follow(place: &Place, seed: u64, commands: u32, peer: &[&str]) -> (u32, String) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow");
    let definition = tests.join("sync.def");
    place.told(&[&format!("--load={}", definition.display())]);
    place.told(&["--shutdown=yes"]);
    place.told(&["--begin"]);
    let out = place.write("sync.out", "");
    let mut command = Command::new(PYTHON);
    command.arg(tests.join("sync.py")).arg(place.port.to_string());
    command.arg(seed.to_string()).arg(commands.to_string()).arg(&out).args(peer);
    let output = command.output().expect("python starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "seed {seed}\n{error}");
    let followed = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0);
    (followed, std::fs::read_to_string(out).expect("written"))
}

#[test]
fn a_client_that_follows_the_changes_has_what_a_new_client_gets() {
    if !has_ecflow() {
        return;
    }
    let seed = seed();
    let place = Place::new();
    let _server = Served::ours(&place);
    let (followed, _) = follow(&place, seed, 400, &[]);
    assert!(followed > 100, "seed {seed}: {followed} of 400 syncs were of changes only");
}
