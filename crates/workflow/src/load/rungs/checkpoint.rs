//! A checkpoint by the thread that also makes changes: it prints a piece, makes the changes that
//! are due, prints the next. Who writes the pieces is the rung.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::due::Due;
use super::peak::Peak;
use super::site::{Figure, Site, median_ns};
use crate::definition::{Style, print, print_pieces};
use crate::model::Tree;

/// Pieces of 64 KiB that are under way at once.
pub(super) const MOST_PIECES: usize = 16;

/// What writes a file from its beginning to its end.
pub(super) trait Writing {
    /// Whether it takes a piece now.
    fn has_room(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Writes a piece, or begins to; asked only where there is room.
    fn write(&mut self, piece: &[u8]) -> io::Result<()>;

    /// Has all of it made durable, or begins to. Nothing is written after that.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether all that was begun is done.
    fn is_done(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// The way in which one begins.
pub(super) type Begin = fn(File) -> io::Result<Box<dyn Writing>>;

/// Writes as many as it says, and checks each.
pub(super) fn measure(site: &Site, begin: Begin) -> io::Result<Vec<Figure>> {
    let mut tree = site.begun()?;
    let mut due = Due::new(&tree);
    let (mut times, mut bytes, mut peak_bytes) = (Vec::new(), 0, None);
    for _ in 0..site.times {
        let expected = print(&tree, Style::Migrate, false);
        let file = site.open()?;
        let peak = Peak::begin();
        let begun = Instant::now();
        checkpoint(&mut tree, &mut due, begin(file)?)?;
        times.push(begun.elapsed());
        peak_bytes = peak_bytes.max(peak.and_then(|peak| peak.bytes()));
        site.check(&expected)?;
        bytes = expected.len();
    }
    due.check(&tree)?;
    let figures = [("checkpoint_ns", median_ns(times)), ("written_bytes", bytes as u64)];
    let peak_bytes = peak_bytes.map(|bytes| ("more_bytes", bytes));
    Ok(figures.into_iter().chain(due.figures()).chain(peak_bytes).collect())
}

fn checkpoint(tree: &mut Tree, due: &mut Due, mut to: Box<dyn Writing>) -> io::Result<()> {
    let snapshot = tree.snapshot();
    due.begin();
    let mut done = Ok(());
    let mut put = |piece: &str, tree: &mut Tree, due: &mut Due| {
        due.catch_up(|change| change(tree));
        while !to.has_room()? {
            due.sleep();
            due.catch_up(|change| change(tree));
        }
        to.write(piece.as_bytes())
    };
    print_pieces(&snapshot, Style::Migrate, |_| true, &mut |piece| {
        if done.is_ok() {
            done = put(piece, tree, due);
        }
    });
    done?;
    to.sync()?;
    loop {
        due.catch_up(|change| change(tree));
        if to.is_done()? {
            return Ok(());
        }
        due.sleep();
    }
}

/// By write(2) and fsync(2).
pub(super) fn blocking(file: File) -> io::Result<Box<dyn Writing>> {
    Ok(Box::new(Blocking { file }))
}

struct Blocking {
    file: File,
}

impl Writing for Blocking {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// By another thread, which does the same.
pub(super) fn pool(mut file: File) -> io::Result<Box<dyn Writing>> {
    let (pieces, next) = channel::<Vec<u8>>();
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let thread = std::thread::spawn(move || {
        for piece in next {
            file.write_all(&piece)?;
            counted.fetch_add(1, Ordering::Release);
        }
        file.sync_all()
    });
    Ok(Box::new(Pool { pieces: Some(pieces), given: 0, written, thread: Some(thread) }))
}

struct Pool {
    /// None once all are given.
    pieces: Option<Sender<Vec<u8>>>,
    given: usize,
    written: Arc<AtomicUsize>,
    /// None once it has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Pool {
    /// What came of the thread, once it has ended.
    fn ended(&mut self) -> io::Result<bool> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            None => Ok(self.thread.is_none()),
            Some(thread) => thread.join().unwrap_or_else(|_| Err(ended())).map(|()| true),
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that writes has ended")
}

impl Writing for Pool {
    fn has_room(&mut self) -> io::Result<bool> {
        if self.ended()? {
            return Err(ended());
        }
        Ok(self.given - self.written.load(Ordering::Acquire) < MOST_PIECES)
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.given += 1;
        let pieces = self.pieces.as_ref().ok_or_else(ended)?;
        pieces.send(piece.to_vec()).map_err(|_| ended())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.pieces = None;
        Ok(())
    }

    fn is_done(&mut self) -> io::Result<bool> {
        self.ended()
    }
}
