//! The rungs, a row each.

use std::fs;
use std::io;

use super::site::{Figure, Site};
use super::{checkpoint, kernel, print, snapshot, strings, triggers};
use crate::definition::RECENT;

/// A rung of a ladder.
#[derive(Debug)]
pub struct Rung {
    /// The ladder.
    pub ladder: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The way, in words.
    pub doc: &'static str,
    measure: fn(&Site) -> io::Result<Vec<Figure>>,
}

const fn rung(
    ladder: &'static str,
    name: &'static str,
    doc: &'static str,
    measure: fn(&Site) -> io::Result<Vec<Figure>>,
) -> Rung {
    Rung { ladder, name, doc, measure }
}

/// All of them, those of a ladder together.
pub static RUNGS: &[Rung] = &[
    rung("print", "formatted", "each line by formatted output to a stream of 8 KiB", |site| {
        print::measure(site, print::formatted)
    }),
    rung("print", "line", "own formatting; a line at a time to the same stream", |site| {
        print::measure(site, print::lines)
    }),
    rung("print", "64KiB", "own formatting; written by 64 KiB", |site| {
        print::measure(site, |tree, file| print::pieces(tree, 64 << 10, file))
    }),
    rung("print", "1MiB", "own formatting; written by 1 MiB", |site| {
        print::measure(site, |tree, file| print::pieces(tree, 1 << 20, file))
    }),
    rung("print", "whole", "own formatting; written as a whole", |site| {
        print::measure(site, |tree, file| print::pieces(tree, usize::MAX, file))
    }),
    rung("print", "line-unbuffered", "own formatting; a write for each line", |site| {
        print::measure(site, print::lines_unbuffered)
    }),
    rung("print", "constant", "as many constant bytes by 64 KiB: the floor", print::constant),
    rung("checkpoint", "blocking", "write and fsync by the thread that makes changes", |site| {
        checkpoint::measure(site, checkpoint::blocking)
    }),
    rung("checkpoint", "mmap", "copied into mapped pages; fsync", |site| {
        checkpoint::measure(site, |file| Ok(Box::new(kernel::Mapped::new(file))))
    }),
    rung("checkpoint", "posix-aio", "the C library's threads write and sync", |site| {
        checkpoint::measure(site, |file| Ok(Box::new(kernel::PosixAio::new(file))))
    }),
    rung("checkpoint", "io_uring", "the kernel writes and syncs what a ring names", |site| {
        checkpoint::measure(site, |file| Ok(Box::new(kernel::Ring::new(file)?)))
    }),
    rung("checkpoint", "pool", "a thread of a pool writes and syncs", |site| {
        checkpoint::measure(site, checkpoint::pool)
    }),
    rung("checkpoint", "pool-prints", "it prints, too, as the server does", |site| {
        snapshot::measure(site, snapshot::Reads::Shared)
    }),
    rung("snapshot", "copy", "of a copy of all nodes", |site| {
        snapshot::measure(site, snapshot::Reads::Copy)
    }),
    rung("snapshot", "lock", "of the tree itself, which is locked while it is printed", |site| {
        snapshot::measure(site, snapshot::Reads::Locked)
    }),
    rung("snapshot", "copy-on-write", "of nodes that changes copy first", |site| {
        snapshot::measure(site, snapshot::Reads::Shared)
    }),
    rung("strings", "apart", "each text by itself, however many nodes share it", |site| {
        strings::measure(site, strings::Texts::Apart)
    }),
    rung("strings", "once", "a shared text once, then its number", |site| {
        strings::measure(site, strings::Texts::Once)
    }),
    rung("triggers", "parsed", "each expression is parsed", |site| triggers::measure(site, 0)),
    rung("triggers", "recent", "unless it is one of the last 4,096, as the server does", |site| {
        triggers::measure(site, RECENT)
    }),
    rung("triggers", "all", "unless it is one of the last 131,072", |site| {
        triggers::measure(site, 1 << 17)
    }),
];

impl Rung {
    /// The one of this name.
    ///
    /// # Errors
    /// There is none: those that there are.
    pub fn find(ladder: &str, name: &str) -> Result<&'static Self, String> {
        if let Some(found) = RUNGS.iter().find(|one| one.ladder == ladder && one.name == name) {
            return Ok(found);
        }
        let of_it = RUNGS.iter().filter(|one| one.ladder == ladder).map(|one| one.name);
        let of_it: Vec<&str> = of_it.collect();
        if !of_it.is_empty() {
            return Err(format!("{ladder} has no rung {name:?}, only {}", of_it.join(", ")));
        }
        let mut ladders: Vec<&str> = RUNGS.iter().map(|one| one.ladder).collect();
        ladders.dedup();
        Err(format!("there is no ladder {ladder:?}, only {}", ladders.join(", ")))
    }

    /// Measures it.
    ///
    /// # Errors
    /// The system's, and what of the result is wrong.
    pub fn measure(&self, site: &Site) -> io::Result<Vec<Figure>> {
        let measured = (self.measure)(site);
        match fs::remove_file(&site.file) {
            Err(why) if why.kind() != io::ErrorKind::NotFound && measured.is_ok() => Err(why),
            _ => measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::generate::Counts;
    use super::*;

    fn site(folder: &tempfile::TempDir) -> Site {
        let counts = Counts::scaled(0.001).expect("a scale");
        Site { counts, times: 2, file: folder.path().join("rung") }
    }

    #[test]
    fn each_rung_of_a_ladder_makes_what_was_meant() {
        let folder = tempfile::tempdir().expect("a folder");
        let site = site(&folder);
        for rung in RUNGS {
            let figures = rung.measure(&site);
            let figures = match figures {
                // Some sandboxes have none, and the rung says so.
                Err(why) if why.to_string().contains("no io_uring") => continue,
                figures => figures.unwrap_or_else(|why| panic!("{rung:?}: {why}")),
            };
            let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
            let made = if rung.ladder == "triggers" { "expressions" } else { "written_bytes" };
            assert!(names.contains(&made), "{rung:?}: {names:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_rung_that_there_is_not_is_named_with_those_that_there_are() {
        let why = Rung::find("snapshot", "fork").expect_err("none");
        assert_eq!(why, "snapshot has no rung \"fork\", only copy, lock, copy-on-write");
        let why = Rung::find("prints", "line").expect_err("none");
        let ladders = "print, checkpoint, snapshot, strings, triggers";
        assert_eq!(why, format!("there is no ladder \"prints\", only {ladders}"));
    }
}
