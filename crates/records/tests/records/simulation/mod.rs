//! The server under simulation: clients that get, put and monitor on a network that breaks, while
//! records change and go. `cargo xtask simulate records` runs as many seeds as there is time for.

mod client;
mod world;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use client::RecordsClient;
use records::protocol::MIN_SEGMENT_BYTES;
use records::server::{Limits, Options, RecordsConnection, Service};
use wire::simulation::{Client, Failure, Faults, Random, Report, Simulation};
use world::{KINDS, TimeOfDay, World};

/// The clients of one simulation, and how many of them are there at once.
const CLIENTS: u32 = 30;
const AT_ONCE: usize = 8;

/// Runs one seed.
fn simulate(seed: u64) -> Result<Report, Failure> {
    let mut random = Random::new(seed);
    let faults = Faults::draw(&mut random);
    let is_tight = random.chance(256);
    let limits = Limits {
        in_flight_bytes: if is_tight { 64 << 10 } else { 24 << 20 },
        segment_bytes: random.chance(256).then(|| MIN_SEGMENT_BYTES + random.index(5000)),
        ..Limits::default()
    };
    let ends_idle = random.chance(256);
    let options = Options {
        threads: 1 + random.index(3),
        idle_timeout: Duration::from_secs(if ends_idle { 40 } else { 1_000_000 }),
        ..Options::default()
    };
    let service = Service::new(limits);
    let time = TimeOfDay::default();
    let clock = time.clone();
    service.set_clock(move || clock.get());
    let world = World::new(&service, time, is_tight || ends_idle);
    let world = Rc::new(RefCell::new(world));
    let shared = Arc::clone(&service);
    let simulation = Simulation::new(seed, faults, options.loop_config(), move |_| {
        RecordsConnection::new(Arc::clone(&shared))
    });
    let mut left = CLIENTS;
    let report = simulation.expect("a simulation").run(AT_ONCE, |random| {
        left = left.checked_sub(1)?;
        Some(Box::new(RecordsClient::new(&world, random)) as Box<dyn Client>)
    })?;
    let World { answers, updates, .. } = &*world.borrow();
    assert!(*answers > 50 && *updates > 20, "{answers} answers and {updates} updates are few");
    assert_eq!((service.connections(), service.in_flight_bytes()), (0, 0));
    for kind in KINDS {
        let record = service.find(&kind.name()).expect("it is there");
        assert_eq!(record.subscribers(), 0, "of {}", kind.name());
    }
    Ok(report)
}

#[test]
fn every_answer_is_right_and_every_monitor_sees_the_last_version_whatever_the_network_does() {
    testing::run_seeds("records", 0..20, simulate);
}

#[test]
fn a_seed_replays_exactly() {
    let [first, again] = [3, 3].map(|seed| simulate(seed).expect("it holds"));
    assert_eq!(first, again);
}

#[test]
#[ignore = "it runs for as long as it is asked to: cargo xtask simulate records"]
fn seeds_of_the_environment_hold() {
    testing::run_seeds_of_environment("records", simulate);
}
