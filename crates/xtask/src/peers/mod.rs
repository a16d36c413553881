//! `cargo xtask peers`: installs the programs that Loadline is measured against and lists which
//! versions are there. The programs are rows of `peers/peers.toml`: `apt` installs some, `pip`
//! others into `target/venv`, npm into `target/npm`, Go brings some into `target/peers/go`, and
//! small ones of our own around a peer's libraries are compiled into `target/peers`. A version
//! other than the stated one is noted and used: figures name the version they had.

mod apt;
mod built;
mod go;
mod node;
mod python;
mod table;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
pub(crate) use python::environment;
use table::{Package, Peer};

pub(crate) use table::{Table, read};

/// The flags of `cargo xtask peers`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install nothing; only print what is there
    #[arg(long)]
    check: bool,
}

/// How much the caller wants the peers that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Only look.
    Check,
    /// Install what is missing; what cannot be had is a note, and its tests are skipped.
    Try,
    /// Install what is missing; what cannot be had is an error.
    Must,
}

impl Wish {
    /// What the environment asks of `make test`: `PEERS=install` insists, `PEERS=check` only
    /// looks, and without either a CI (`CI=true`) gets what it can.
    pub(crate) fn of(peers: Option<&str>, ci: Option<&str>) -> Wish {
        match (peers, ci) {
            (Some("install"), _) => Wish::Must,
            (None | Some(""), Some("true")) => Wish::Try,
            _ => Wish::Check,
        }
    }
}

/// A peer and what was found of it.
struct Found {
    peer: Peer,
    path: Option<PathBuf>,
    version: Option<String>,
}

/// Installs what is missing, unless it is only to check, and prints what is installed.
pub(crate) fn run(args: &Args) -> Result<()> {
    bring(if args.check { Wish::Check } else { Wish::Must })
}

/// Does as wished, and prints what is installed in the end.
pub(crate) fn bring(wish: Wish) -> Result<()> {
    let repository = process::repository();
    let mut table = table::read(&repository)?;
    let peers = std::mem::take(&mut table.peer);
    let target = repository.join("target");
    let own = table.python.len() + table.node.len() + table.go.len() + table.built.len();
    let count = peers.len() + own;
    let mut problems = Vec::new();
    if wish != Wish::Check {
        let missing: Vec<&Peer> =
            peers.iter().filter(|peer| process::find(&peer.program).is_none()).collect();
        if !missing.is_empty() {
            problems.extend(apt::install(&missing).err());
        }
        problems.extend(bring_own(&repository, &target, &table));
    }
    let found: Vec<Found> = peers.into_iter().map(look).collect();
    print!("{}", report(&found));
    let absent: Vec<&str> = found
        .iter()
        .filter(|found| found.path.is_none())
        .map(|found| found.peer.package.as_str())
        .collect();
    let absent_own = report_own(&repository, &target, &table);
    if absent.is_empty() && absent_own == 0 {
        return Ok(());
    }
    for problem in problems {
        println!("could not install: {problem:#}");
    }
    if !absent.is_empty() {
        println!("to install: {}", apt::line(&absent));
    }
    if absent_own > 0 {
        println!("to install: cargo xtask peers");
    }
    match wish {
        Wish::Must => bail!("{} of {count} peers are missing", absent.len() + absent_own),
        Wish::Check | Wish::Try => Ok(()),
    }
}

/// Installs Python's and Node's packages and Go's programs, and builds our own, where they are not
/// there yet. Gives what went wrong.
fn bring_own(repository: &Path, target: &Path, table: &Table) -> Vec<anyhow::Error> {
    let absent = |package: &&Package| python::version(target, package).is_none();
    let missing: Vec<&Package> = table.python.iter().filter(absent).collect();
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.extend(python::install(target, &missing).err());
    }
    for package in table.node.iter().filter(|one| node::version(target, one).is_none()) {
        problems.extend(node::install(target, package).err());
    }
    for tool in table.go.iter().filter(|tool| go::version(target, tool).is_none()) {
        problems.extend(go::install(target, tool).err());
    }
    for program in &table.built {
        if !built::is_current(repository, target, program) {
            problems.extend(built::build(repository, target, program).err());
        }
    }
    problems
}

/// Prints a line for each package and each program; gives how many are missing.
fn report_own(repository: &Path, target: &Path, table: &Table) -> usize {
    let mut absent = 0;
    let mut line = |service: &str, name: &str, state: Option<String>, note: Option<&String>| {
        absent += usize::from(state.is_none());
        let state = state.unwrap_or_else(|| "missing: what needs it is skipped".to_owned());
        let note = note.map_or_else(String::new, |note| format!("  ({note})"));
        println!("{service:<8}{name:<14}{state}{note}");
    };
    for package in &table.python {
        let state = python::version(target, package).map(|version| {
            let place = python::folder(target, package.environment());
            format!("{version:<8} stated {:<8} {}", package.version, place.display())
        });
        line(&package.service, &package.package, state, package.note.as_ref());
    }
    for package in &table.node {
        let state = node::version(target, package).map(|version| {
            let place = node::folder(target, &package.service);
            format!("{version:<8} stated {:<8} {}", package.version, place.display())
        });
        line(&package.service, &package.package, state, package.note.as_ref());
    }
    for tool in &table.go {
        let state = go::version(target, tool).map(|version| {
            let path = go::path(target, tool);
            format!("{version:<8} stated {:<8} {}", tool.version, path.display())
        });
        line(&tool.service, &tool.program, state, tool.note.as_ref());
    }
    for program in &table.built {
        let current = built::is_current(repository, target, program);
        let state = current.then(|| {
            format!("built of {}: {}", program.source, built::path(target, program).display())
        });
        line(&program.service, &program.program, state, program.note.as_ref());
    }
    absent
}

fn look(peer: Peer) -> Found {
    let path = process::find(&peer.program);
    let version = path.as_ref().and_then(|_| version(&peer));
    Found { peer, path, version }
}

fn version(peer: &Peer) -> Option<String> {
    let (program, args) = peer.shows.split_first()?;
    let text = process::output(Command::new(program).args(args)).ok()?;
    table::version_in(&text).map(str::to_owned)
}

/// One line for each peer: its service and name, the versions found and stated, and the path.
fn report(found: &[Found]) -> String {
    let mut text = String::new();
    for Found { peer, path, version } in found {
        let shown = version.as_deref().unwrap_or("unknown");
        let line = match path {
            None => format!("missing: what needs it is skipped (stated {})", peer.version),
            Some(path) => format!("{shown:<8} stated {:<8} {}", peer.version, path.display()),
        };
        let _ = write!(text, "{:<8}{:<14}{line}", peer.service, peer.program);
        if path.is_some() && *shown != *peer.version {
            text.push_str("  (another version than stated; used all the same)");
        }
        if let Some(note) = &peer.note {
            let _ = write!(text, "  ({note})");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(version: &str) -> Peer {
        Peer {
            program: "memcached".into(),
            service: "cache".into(),
            package: "memcached".into(),
            shows: vec!["memcached".into(), "--version".into()],
            version: version.into(),
            unit: None,
            note: None,
        }
    }

    #[test]
    fn only_ci_and_an_explicit_wish_install() {
        assert_eq!(Wish::of(None, None), Wish::Check);
        assert_eq!(Wish::of(None, Some("false")), Wish::Check);
        assert_eq!(Wish::of(None, Some("true")), Wish::Try);
        assert_eq!(Wish::of(Some("install"), None), Wish::Must);
        assert_eq!(Wish::of(Some("check"), Some("true")), Wish::Check);
    }

    #[test]
    fn a_difference_in_versions_is_noted_and_a_missing_peer_named() {
        let found = |stated: &str, path: Option<&str>| Found {
            peer: peer(stated),
            path: path.map(PathBuf::from),
            version: path.map(|_| "1.6.18".to_owned()),
        };
        let text = report(&[
            found("1.6.18", Some("/usr/bin/memcached")),
            found("1.6.45", Some("/usr/bin/memcached")),
            found("1.6.18", None),
        ]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "cache   memcached     1.6.18   stated 1.6.18   /usr/bin/memcached");
        assert!(lines[1].ends_with("(another version than stated; used all the same)"));
        let missing = "cache   memcached     missing: what needs it is skipped (stated 1.6.18)";
        assert_eq!(lines[2], missing);
    }
}
