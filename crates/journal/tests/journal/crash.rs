//! Power is lost before every single call: what was acknowledged is there, and nothing else but
//! the next that were appended.

use journal::{Error, FaultyDisk, Journal, Options, SyncPolicy};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{append, open, open_with, put, snapshot};

fn options(sync: SyncPolicy) -> Options {
    Options { sync, segment_bytes: 2000, ..Options::default() }
}

/// Appends, waits and makes snapshots as the seed says, until power is lost.
fn work(journal: &mut Journal, seed: u64) -> Result<(), Error> {
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..12 {
        match random.random_range(0..10) {
            0..4 => append(journal, random.random_range(1..6))?,
            4..9 => put(journal, random.random_range(1..6))?,
            _ => snapshot(journal)?,
        }
    }
    Ok(())
}

/// A run that loses power after this many calls: the disk, the last record that was acknowledged,
/// and whether it came to its end before.
fn run(seed: u64, calls: u64, sync: SyncPolicy) -> (FaultyDisk, u64, bool) {
    let disk = FaultyDisk::default();
    disk.shorten_writes(seed);
    disk.lose_power_after(calls);
    let Ok((mut journal, ..)) = open_with(disk.clone(), options(sync)) else {
        return (disk, 0, false);
    };
    let watch = journal.watch();
    let is_over = work(&mut journal, seed).and_then(|()| journal.close()).is_ok();
    (disk, watch.acknowledged(), is_over)
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_before_any_call() {
    for seed in 0..6 {
        for calls in 0.. {
            let (disk, acknowledged, is_over) = run(seed, calls, SyncPolicy::Always);
            for loss in 0..3 {
                let place = format!("seed {seed}, {calls} calls, loss {loss}");
                let disk = disk.after_power_loss(loss);
                let (mut journal, _, count) =
                    open(disk.clone()).unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(count >= acknowledged, "{place}: {count} of {acknowledged}");
                put(&mut journal, 2).expect("goes on");
                drop(journal);
                assert_eq!(open(disk).expect("opens again").2, count + 2, "{place}");
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_process_that_is_killed_loses_nothing_acknowledged_whatever_the_policy() {
    for seed in 0..6 {
        for calls in (0..).step_by(3) {
            let (disk, acknowledged, is_over) = run(seed, calls, SyncPolicy::Never);
            let place = format!("seed {seed}, {calls} calls");
            let opened = open(disk.after_kill());
            let (_, _, count) = opened.unwrap_or_else(|error| panic!("{place}: {error}"));
            assert!(count >= acknowledged, "{place}: {count} of {acknowledged}");
            // Without fsync a loss of power may take any of the last, but leaves no damage.
            for loss in 0..3 {
                let opened = open(disk.after_power_loss(loss));
                opened.unwrap_or_else(|error| panic!("{place}, loss {loss}: {error}"));
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn power_that_is_lost_while_the_journal_is_opened_after_a_crash_loses_nothing_either() {
    for seed in 0..6 {
        for calls in (0..).step_by(3) {
            let (disk, acknowledged, is_over) = run(seed, calls, SyncPolicy::Always);
            let is_killed = calls % 2 == 0;
            for again in 0.. {
                let disk = if is_killed { disk.after_kill() } else { disk.after_power_loss(seed) };
                disk.lose_power_after(again);
                let served = open(disk.clone()).map(|(_, _, count)| count);
                let opened = open(disk.after_power_loss(again));
                let (_, _, count) = opened.expect("opens after the second loss");
                let least = *served.as_ref().unwrap_or(&acknowledged);
                assert!(count >= least, "seed {seed}, {calls} and {again} calls");
                if served.is_ok() {
                    break;
                }
            }
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_snapshot_that_a_killed_process_has_left_is_durable_before_its_log_is_removed() {
    for calls in 0.. {
        let disk = FaultyDisk::default();
        let (mut journal, ..) = open(disk.clone()).expect("a new journal");
        put(&mut journal, 3).expect("acknowledged");
        disk.lose_power_after(calls);
        let is_over = snapshot(&mut journal).is_ok();
        drop(journal);
        let disk = disk.after_kill();
        assert_eq!(open(disk.clone()).expect("opens").2, 3);
        for seed in 0..16 {
            let opened = open(disk.after_power_loss(seed));
            let (_, _, count) = opened.unwrap_or_else(|error| panic!("{calls} calls: {error}"));
            assert_eq!(count, 3, "{calls} calls");
        }
        if is_over {
            break;
        }
    }
}
