//! `cargo xtask peers`: brings the programs that Loadline is measured against and says which
//! versions are there. The programs are rows of `peers/peers.toml`; `apt` installs them. A
//! version other than the stated one is noted and used: figures name the version they had.

mod apt;
mod table;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use table::Peer;

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

/// Installs what is missing, unless told only to look, and prints what is there.
pub(crate) fn run(args: &Args) -> Result<()> {
    bring(if args.check { Wish::Check } else { Wish::Must })
}

/// Does as the wish says, and prints what is there in the end.
pub(crate) fn bring(wish: Wish) -> Result<()> {
    let peers = table::read(&process::repository())?;
    let missing: Vec<&Peer> =
        peers.iter().filter(|peer| process::find(&peer.program).is_none()).collect();
    let installed = match wish {
        Wish::Try | Wish::Must if !missing.is_empty() => apt::install(&missing),
        _ => Ok(()),
    };
    let found: Vec<Found> = peers.into_iter().map(look).collect();
    print!("{}", report(&found));
    let absent: Vec<&str> = found
        .iter()
        .filter(|found| found.path.is_none())
        .map(|found| found.peer.package.as_str())
        .collect();
    if absent.is_empty() {
        return Ok(());
    }
    if let Err(error) = installed {
        println!("could not install: {error:#}");
    }
    println!("to install: {}", apt::line(&absent));
    match wish {
        Wish::Must => bail!("{} of {} peers are missing", absent.len(), found.len()),
        Wish::Check | Wish::Try => Ok(()),
    }
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

/// One line for each peer: its room and name, the versions found and stated, and the path.
fn report(found: &[Found]) -> String {
    let mut text = String::new();
    for Found { peer, path, version } in found {
        let shown = version.as_deref().unwrap_or("unknown");
        let line = match path {
            None => format!("missing: what needs it is skipped (stated {})", peer.version),
            Some(path) => format!("{shown:<8} stated {:<8} {}", peer.version, path.display()),
        };
        let _ = write!(text, "{:<8}{:<14}{line}", peer.room, peer.program);
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
            room: "cache".into(),
            package: "memcached".into(),
            shows: vec!["memcached".into(), "--version".into()],
            version: version.into(),
            service: None,
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
