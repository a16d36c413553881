//! A tree printed to a file: by formatted output or by own formatting, and how much of it is
//! written at once.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use super::super::tree::Process;
use super::formatted;
use super::peak::Peak;
use super::site::{Figure, Site, median_ns};
use crate::definition::{Style, print, print_by};
use crate::model::Tree;

/// The stream's buffer, as those of C++ have it.
const STREAM_BYTES: usize = 8 << 10;

/// A line as most of a definition's are: that of a variable.
const CONSTANT: &[u8] = b"edit VAR_00 '/data/0000000000000000'\n";

/// Formats and writes each token by itself.
pub(super) fn formatted(tree: &Tree, file: &File) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(STREAM_BYTES, file);
    formatted::print(tree, &mut stream)?;
    stream.flush()
}

/// Formats some lines in memory, and passes on one by one.
pub(super) fn lines(tree: &Tree, file: &File) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(STREAM_BYTES, file);
    each_line(tree, &mut stream)?;
    stream.flush()
}

/// The same without a stream's buffer.
pub(super) fn lines_unbuffered(tree: &Tree, mut file: &File) -> io::Result<()> {
    each_line(tree, &mut file)
}

fn each_line(tree: &Tree, to: &mut impl Write) -> io::Result<()> {
    let mut done = Ok(());
    // Passed on after each node.
    print_by(tree, Style::Defs, 1, &mut |lines| {
        for line in lines.split_inclusive('\n') {
            if done.is_ok() {
                done = to.write_all(line.as_bytes());
            }
        }
    });
    done
}

/// Formats this much in memory before it is written.
pub(super) fn pieces(tree: &Tree, bytes: usize, mut file: &File) -> io::Result<()> {
    let mut done = Ok(());
    print_by(tree, Style::Defs, bytes, &mut |piece| {
        if done.is_ok() {
            done = file.write_all(piece.as_bytes());
        }
    });
    done
}

/// Prints as often as it says, and checks the last text.
pub(super) fn measure(
    site: &Site,
    way: fn(&Tree, &File) -> io::Result<()>,
) -> io::Result<Vec<Figure>> {
    let tree = site.tree()?;
    let figures = timed(site, |file| way(&tree, file))?;
    site.check(&print(&tree, Style::Defs, false))?;
    Ok(figures)
}

/// Writes as many bytes that are always the same.
pub(super) fn constant(site: &Site) -> io::Result<Vec<Figure>> {
    let tree = site.tree()?;
    let meant = print(&tree, Style::Defs, false).len();
    let piece = CONSTANT.repeat((64 << 10) / CONSTANT.len() + 1);
    let figures = timed(site, |mut file| {
        let mut left = meant;
        while left > 0 {
            let part = left.min(64 << 10);
            file.write_all(&piece[..part])?;
            left -= part;
        }
        Ok(())
    })?;
    match figures.iter().find(|(name, _)| *name == "written_bytes") {
        Some((_, bytes)) if *bytes == meant as u64 => Ok(figures),
        _ => Err(io::Error::other(format!("{meant} bytes were meant: {figures:?}"))),
    }
}

fn timed(site: &Site, mut way: impl FnMut(&File) -> io::Result<()>) -> io::Result<Vec<Figure>> {
    let process = i32::try_from(std::process::id()).ok().and_then(Process::of);
    let cpu_ns = || process.as_ref().map_or(0, Process::cpu_ns);
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    let (mut bytes, mut peak_bytes) = (0, None);
    for _ in 0..site.times {
        let file = site.open()?;
        let peak = Peak::begin();
        let (begun, cpu_before) = (Instant::now(), cpu_ns());
        way(&file)?;
        wall.push(begun.elapsed());
        cpu.push(Duration::from_nanos(cpu_ns() - cpu_before));
        peak_bytes = peak_bytes.max(peak.and_then(|peak| peak.bytes()));
        bytes = file.metadata()?.len();
    }
    let figures = [("print_ns", median_ns(wall)), ("print_cpu_ns", median_ns(cpu))];
    let peak_bytes = peak_bytes.map(|bytes| ("more_bytes", bytes));
    Ok(figures.into_iter().chain([("written_bytes", bytes)]).chain(peak_bytes).collect())
}
