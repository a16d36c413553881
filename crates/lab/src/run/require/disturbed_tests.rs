//! Percentiles of disturbed rounds against planted servers, whose answers without the disturbance
//! are known: a disturbance alone breaks nothing, and a server that stalls breaks its limit.

use judge::{Random, Stretch};

use super::*;
use crate::drive::empty_histogram;
use crate::plan::Comparison::Less;

const MS: u64 = 1_000_000;
const ROUND_NS: u64 = 4_000 * MS;
const LIMIT_NS: u64 = 100 * MS;

/// A server that answers a request in 5 µs, one after another.
#[derive(Clone, Copy, Default)]
struct Server {
    /// It stands still for the first of these times in each of the second; neither where 0.
    stall_ns: u64,
    every_ns: u64,
    /// What passes between its answer and the receipt, as in a queue without end.
    pipe_ns: u64,
}

/// Times in which a side can't run, in order.
type Waits = Vec<(u64, u64)>;

/// The end of the wait or stall that this time lies in, or the time itself.
fn passed(at: u64, waits: &[(u64, u64)]) -> u64 {
    let before = waits.partition_point(|(from, _)| *from <= at);
    waits[..before].last().map_or(at, |(_, to)| at.max(*to))
}

/// When it runs again: neither stalled nor waiting.
fn runs(mut at: u64, stalls: &[(u64, u64)], waits: &[(u64, u64)]) -> u64 {
    loop {
        let next = passed(passed(at, stalls), waits);
        if next == at {
            return at;
        }
        at = next;
    }
}

/// The latencies of a request each millisecond.
fn latencies(server: Server, stalls: &[(u64, u64)], load: &Waits, own: &Waits) -> Vec<u64> {
    let (mut sent_at, mut done_at) = (0, 0);
    let answer = |due: u64| {
        sent_at = passed(due.max(sent_at), load);
        done_at = runs(sent_at.max(done_at), stalls, own) + 5_000;
        passed(runs(done_at + server.pipe_ns, stalls, own), load) - due
    };
    (0..ROUND_NS).step_by(MS as usize).map(answer).collect()
}

/// How the disturbance is spread.
#[derive(Clone, Copy, PartialEq)]
enum Spread {
    /// A wait of up to that long in each 20 ms, with this probability, on either side.
    Anywhere(u64, f64),
    /// One of this length right before each stall, and one right after it.
    AtStalls(u64),
}

fn waits(spread: Spread, stalls: &[(u64, u64)], random: &mut Random) -> Waits {
    match spread {
        Spread::Anywhere(most_ns, part) => {
            let begins = (0..ROUND_NS).step_by(20 * MS as usize);
            let waits = begins.filter_map(|from| {
                let length = (random.uniform() * most_ns as f64) as u64;
                let from = from + (random.uniform() * 8.0 * MS as f64) as u64;
                (random.uniform() < part).then_some((from, from + length))
            });
            waits.collect()
        }
        Spread::AtStalls(length) => {
            let around = |(from, to): &(u64, u64)| {
                [(from.saturating_sub(length), *from), (*to, *to + length)]
            };
            stalls.iter().flat_map(around).collect()
        }
    }
}

/// One round: what the lab measures, with the waits as a kernel books them, at their ends, and in
/// tenths of a second.
fn round(ordinal: u32, server: Server, spread: Spread, random: &mut Random) -> Trial {
    let mut stalls = Vec::new();
    if server.stall_ns > 0 {
        let first = (random.uniform() * server.every_ns as f64) as u64;
        let begins = (first..ROUND_NS).step_by(server.every_ns as usize);
        stalls.extend(begins.map(|from| (from, from + server.stall_ns)));
    }
    let load = match spread {
        Spread::AtStalls(_) => Vec::new(),
        Spread::Anywhere(..) => waits(spread, &stalls, random),
    };
    let own = waits(spread, &stalls, random);
    let mut histogram = empty_histogram();
    for latency in latencies(server, &stalls, &load, &own) {
        histogram.record(latency).unwrap();
    }
    let mut trial = Trial::begin(0, ordinal, 0).with_latencies(&histogram);
    (trial.measured_ns, trial.counts.operations) = (ROUND_NS, ROUND_NS / MS);
    trial.validity = Validity::Disturbed;
    let tenth = |wait: &(u64, u64)| wait.1 / (100 * MS);
    let stretch = |wait: &(u64, u64)| Stretch {
        from_ns: tenth(wait) * 100 * MS,
        to_ns: (tenth(wait) + 1) * 100 * MS,
        taken_ns: wait.1 - wait.0,
    };
    trial.taken = Some(load.iter().chain(&own).map(stretch).collect());
    trial
}

fn trials(server: Server, spread: Spread, seed: u64) -> Vec<Trial> {
    let mut random = Random::new(seed);
    (1..=5).map(|ordinal| round(ordinal, server, spread, &mut random)).collect()
}

fn judged(trials: &[Trial]) -> RequirementOutcome {
    let figure = Expression::Name("latency.p99".to_owned());
    let text = "latency.p99 < 100ms".to_owned();
    let (comparison, bound) = (Less, LIMIT_NS as f64);
    let limit = Requirement { text, figure, unit: None, comparison, bound };
    let (confidence, least_rounds) = (0.95, judge::MIN_ROUNDS);
    let (closed_slots, scheduled_slots, is_schedule) = (0, 64, true);
    let subject = "planted";
    let terms = Terms {
        target: 0,
        subject,
        confidence,
        least_rounds,
        closed_slots,
        scheduled_slots,
        is_schedule,
    };
    judge_requirement(&limit, trials, &terms).outcome
}

const SEEDS: u64 = 40;

/// For how many seeds the verdict is *broken*.
fn broken_of(server: Server, spread: Spread) -> usize {
    (0..SEEDS).filter(|seed| judged(&trials(server, spread, *seed)) == Broken).count()
}

/// 200 ms every 2 s: 5 % of the answers take more than 100 ms.
const STALLS: Server = Server { stall_ns: 200 * MS, every_ns: 2_000 * MS, pipe_ns: 0 };

/// It takes nearly as long as the limit allows, with every answer.
const NEAR: Server = Server { stall_ns: 0, every_ns: 0, pipe_ns: 99 * MS };

/// A wait in every tenth of the time, 3 ms at most: 1.5 % of it on both sides together.
const LIGHT: Spread = Spread::Anywhere(3 * MS, 0.1);

/// As many as there are turns, 6 ms at most: 30 % of the time.
const HEAVY: Spread = Spread::Anywhere(6 * MS, 1.0);

#[test]
fn a_disturbance_alone_breaks_no_percentile() {
    // Of these a little less than one answer in a hundred takes longer than the limit.
    let stalls = |ms: u64, every| Server { stall_ns: ms * MS, every_ns: every * MS, pipe_ns: 0 };
    let (short, long) = (stalls(109, 1_000), stalls(195, 10_000));
    for (name, server, spread) in [
        ("nearly as slow as allowed, light", NEAR, LIGHT),
        ("nearly as slow as allowed, heavy", NEAR, HEAVY),
        ("short stalls, light", short, LIGHT),
        ("short stalls, heavy", short, HEAVY),
        ("short stalls met by waits", short, Spread::AtStalls(8 * MS)),
        ("long stalls, light", long, LIGHT),
        ("long stalls met by waits", long, Spread::AtStalls(8 * MS)),
        ("no stall, and waits longer than the limit", NEAR, Spread::Anywhere(150 * MS, 0.2)),
    ] {
        let broken = broken_of(server, spread);
        assert!(broken * 20 <= SEEDS as usize, "{name}: {broken} of {SEEDS}, seeds 0 to 39");
    }
}

#[test]
fn a_server_that_stalls_breaks_its_limit_though_every_round_is_disturbed() {
    let light = broken_of(STALLS, LIGHT);
    assert!(light * 10 >= 9 * SEEDS as usize, "{light} of {SEEDS}, seeds 0 to 39");
    assert_eq!(broken_of(STALLS, HEAVY), 0, "a disturbance of that size could be all of it");
    let mut unseen = trials(STALLS, LIGHT, 1);
    assert_eq!(judged(&unseen), Broken);
    unseen.iter_mut().for_each(|trial| trial.taken = None);
    assert_eq!(judged(&unseen), CantTell, "it isn't known what the disturbance took");
    // The margin is what keeps a disturbance from being told.
    let mut near = trials(NEAR, HEAVY, 1);
    assert_eq!(judged(&near), CantTell);
    near.iter_mut().for_each(|trial| trial.taken = Some(Vec::new()));
    assert_eq!(judged(&near), Broken);
}
