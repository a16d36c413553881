//! The server under simulation: clients of all protocols on a network that breaks, with a
//! model of what each answer has to be. `cargo xtask simulate cache` runs seeds for any time.

mod binary;
mod client;
mod model;
mod operations;
mod text;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cache::model::{Clock, Policy, Sharing};
use cache::server::{CacheConnection, Options, Service};
use client::{CacheClient, World};
use wire::simulation::{Client, Failure, Faults, Random, Report, START_NS, Simulation};

/// The clients of one simulation, and how many of them are there at once.
const CLIENTS: u32 = 40;
const AT_ONCE: usize = 8;

/// The settings of a seed.
fn options(seed: u64, random: &mut Random) -> Options {
    let is_small = random.chance(400);
    let threads = 1 + random.index(3);
    let closes_slow = random.chance(200);
    let sharing = if random.chance(256) { Sharing::GlobalLock } else { Sharing::Sharded };
    Options {
        threads,
        memory_bytes: if is_small { 2 << 20 } else { 64 << 20 },
        item_bytes: 64 << 10 << random.below(2),
        evict: !is_small || random.chance(700),
        policy: Policy::ALL[random.index(Policy::ALL.len())].1,
        sharing,
        send_bytes: closes_slow.then_some(128 << 10),
        output_limit_bytes: 1 << random.below(19),
        flush_each: random.chance(64),
        key_seed: Some(seed),
        ..Options::default()
    }
}

/// Runs one seed.
fn simulate(seed: u64) -> Result<Report, Failure> {
    let mut random = Random::new(seed);
    let faults = Faults::draw(&mut random);
    let options = options(seed, &mut random);
    let is_ample = options.memory_bytes > 2 << 20;
    let evicts = !is_ample && options.evict;
    let (closes_slow, item_bytes) = (options.send_bytes.is_some(), options.item_bytes);
    let world = World::new(evicts, is_ample, closes_slow, item_bytes);
    let world = Rc::new(RefCell::new(world));
    let clock = Clock { start_ns: START_NS, start_unix_s: 1_700_000_000 };
    let service = Arc::new(Service::new(options, clock).expect("a service"));
    let shared = Arc::clone(&service);
    let simulation = Simulation::new(seed, faults, service.loop_config(), move |own| {
        CacheConnection::new(Arc::clone(&shared), own.thread())
    });
    let idle = held(&service);
    let mut left = CLIENTS;
    let report = simulation.expect("a simulation").run(AT_ONCE, |random| {
        left = left.checked_sub(1)?;
        Some(Box::new(CacheClient::new(&world, random)) as Box<dyn Client>)
    })?;
    assert_eq!(held(&service), idle, "what connections have held is released");
    assert!(world.borrow().answers > 100, "{} answers are few", world.borrow().answers);
    Ok(report)
}

/// The lines of the service's counters about what connections hold.
fn held(service: &Service) -> Vec<String> {
    let all = service.prometheus(START_NS);
    let names = ["cache_read_buf_bytes", "cache_log_watchers"];
    let is_held = |line: &&str| names.iter().any(|name| line.starts_with(name));
    all.lines().filter(is_held).map(str::to_owned).collect()
}

#[test]
fn every_answer_is_right_and_in_order_whatever_the_network_does() {
    testing::run_seeds("cache", 0..20, simulate);
}

#[test]
fn a_seed_replays_exactly() {
    let [first, again] = [3, 3].map(|seed| simulate(seed).expect("it holds"));
    assert_eq!(first, again);
}

#[test]
#[ignore = "it runs for as long as it is asked to: cargo xtask simulate cache"]
fn seeds_of_the_environment_hold() {
    testing::run_seeds_of_environment("cache", simulate);
}
