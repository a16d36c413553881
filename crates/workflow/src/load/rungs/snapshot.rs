//! A checkpoint by another thread while changes go on, and what it reads meanwhile: a copy of the
//! tree, the tree itself behind a lock, or nodes that changes copy first.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::due::Due;
use super::peak::Peak;
use super::site::{Figure, Site, median_ns};
use crate::definition::{Style, print, print_pieces};
use crate::model::{Snapshot, Tree};

/// What a checkpoint reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reads {
    /// A copy, made before.
    Copy,
    /// The tree, which no one changes meanwhile.
    Locked,
    /// Nodes that are copied before they are changed.
    Shared,
}

/// Writes as many as it says, and checks each.
pub(super) fn measure(site: &Site, reads: Reads) -> io::Result<Vec<Figure>> {
    let tree = Mutex::new(site.begun()?);
    let mut due = Due::new(&locked(&tree));
    let (mut times, mut begins) = (Vec::new(), Vec::new());
    let (mut bytes, mut peak_bytes) = (0, None);
    for _ in 0..site.times {
        let expected = print(&locked(&tree), Style::Migrate, false);
        let peak = Peak::begin();
        let begun = Instant::now();
        begins.push(checkpoint(site, reads, &tree, &mut due)?);
        times.push(begun.elapsed());
        peak_bytes = peak_bytes.max(peak.and_then(|peak| peak.bytes()));
        site.check(&expected)?;
        bytes = expected.len();
    }
    due.check(&locked(&tree))?;
    let figures = [
        ("checkpoint_ns", median_ns(times)),
        ("begin_ns", median_ns(begins)),
        ("written_bytes", bytes as u64),
    ];
    let peak_bytes = peak_bytes.map(|bytes| ("more_bytes", bytes));
    Ok(figures.into_iter().chain(due.figures()).chain(peak_bytes).collect())
}

fn locked(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one, and returns how long the thread that makes changes was kept by its beginning.
fn checkpoint(
    site: &Site,
    reads: Reads,
    tree: &Mutex<Tree>,
    due: &mut Due,
) -> io::Result<Duration> {
    std::thread::scope(|scope| {
        due.begin();
        let begun = Instant::now();
        let thread = begin(scope, site, reads, tree)?;
        let kept = begun.elapsed();
        loop {
            due.catch_up(|change| change(&mut locked(tree)));
            if thread.is_finished() {
                break;
            }
            due.sleep();
        }
        let ended = || io::Error::other("the thread that writes has ended");
        thread.join().unwrap_or_else(|_| Err(ended())).map(|()| kept)
    })
}

fn begin<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    site: &'env Site,
    reads: Reads,
    tree: &'env Mutex<Tree>,
) -> io::Result<ScopedJoinHandle<'scope, io::Result<()>>> {
    let of = |snapshot: Snapshot| scope.spawn(move || printed(site, &snapshot)?.sync_all());
    match reads {
        Reads::Copy => Ok(of(locked(tree).copied())),
        Reads::Shared => Ok(of(locked(tree).snapshot())),
        Reads::Locked => {
            let (has, wait) = channel();
            let thread = scope.spawn(move || {
                let tree = locked(tree);
                // Whoever waits for it may have gone.
                let _ = has.send(());
                let file = printed(site, &tree)?;
                drop(tree);
                file.sync_all()
            });
            wait.recv().map_err(io::Error::other)?;
            Ok(thread)
        }
    }
}

fn printed(site: &Site, tree: &Snapshot) -> io::Result<File> {
    let (mut file, mut done) = (site.open()?, Ok(()));
    print_pieces(tree, Style::Migrate, |_| true, &mut |piece| {
        if done.is_ok() {
            done = file.write_all(piece.as_bytes());
        }
    });
    done.map(|()| file)
}
