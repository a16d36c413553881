//! What rungs measure, and where they write: a generated definition, and a file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::super::generate::{Counts, generate};
use crate::definition::parse;
use crate::model::{Instant, Moment, Rules, ServerState, Tree};

/// A figure: its name, and its value in the unit that the name ends in.
pub type Figure = (&'static str, u64);

/// What errors call the definition.
pub(super) const GENERATED: &str = "what is generated";

/// What is measured, how often, and where files are written.
#[derive(Clone, Debug)]
pub struct Site {
    /// How many nodes the tree has.
    pub counts: Counts,
    /// How often each is done; the figures are medians.
    pub times: u32,
    /// The file, which is replaced and in the end removed.
    pub file: PathBuf,
}

impl Site {
    /// The definition's text.
    pub(super) fn text(&self) -> io::Result<String> {
        let mut text = Vec::new();
        generate(&self.counts, &mut text)?;
        String::from_utf8(text).map_err(io::Error::other)
    }

    /// The tree as it is read.
    pub(super) fn tree(&self) -> io::Result<Tree> {
        Ok(parse(&self.text()?, GENERATED).map_err(io::Error::other)?.tree)
    }

    /// The tree of a halted server, begun.
    pub(super) fn begun(&self) -> io::Result<Tree> {
        let mut tree = Tree::default();
        let mut rules = Rules::new(&mut tree, MOMENT);
        rules.take(self.tree()?, false).map_err(io::Error::other)?;
        let _ = rules.finish();
        begin(&mut tree)?;
        Ok(tree)
    }

    /// The file anew, which can be read and mapped, too.
    pub(super) fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&self.file)
    }

    /// Whether the file has this text.
    pub(super) fn check(&self, expected: &str) -> io::Result<()> {
        let written = fs::read(&self.file)?;
        if written == expected.as_bytes() {
            return Ok(());
        }
        let both = written.iter().zip(expected.as_bytes());
        let same = both.take_while(|(one, other)| one == other).count();
        let (bytes, meant) = (written.len(), expected.len());
        let what = format!("{bytes} bytes are written, {meant} were meant: other from byte {same}");
        Err(io::Error::other(format!("{}: {what}", self.file.display())))
    }
}

/// Begins all suites on a server that is halted, so that nothing starts.
pub(super) fn begin(tree: &mut Tree) -> io::Result<()> {
    tree.server_mut().state = ServerState::Halted;
    let mut rules = Rules::new(tree, MOMENT);
    rules.begin_all(true).map_err(io::Error::other)?;
    let _ = rules.finish();
    Ok(())
}

/// When all changes are made.
pub(super) const MOMENT: Moment = Moment { now: Instant::seconds(1_767_225_600), entropy: 0 };

/// The median in nanoseconds, of which half are less.
pub(super) fn median_ns(mut all: Vec<Duration>) -> u64 {
    all.sort_unstable();
    let median = all.get(all.len() / 2).copied().unwrap_or_default();
    u64::try_from(median.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_are_found_with_their_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let counts = Counts::scaled(0.001).expect("a scale");
        let site = Site { counts, times: 1, file: folder.path().join("rung") };
        fs::write(&site.file, "suite t\n").expect("written");
        let why = site.check("suite s\n").expect_err("another text").to_string();
        assert!(why.contains("8 bytes are written, 8 were meant: other from byte 6"), "{why}");
        assert!(site.check("suite t\n").is_ok());
    }
}
