//! Reading `peers/peers.toml`, and finding a version in a program's output.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One row of the table; the table's head explains each column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    pub(crate) program: String,
    pub(crate) service: String,
    pub(crate) package: String,
    pub(crate) shows: Vec<String>,
    pub(crate) version: String,
    pub(crate) unit: Option<String>,
    pub(crate) note: Option<String>,
}

/// A package of Python's registry, or of Node's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) package: String,
    pub(crate) service: String,
    /// Where it is installed, if not with the others of its service: one of two versions.
    environment: Option<String>,
    pub(crate) version: String,
    pub(crate) note: Option<String>,
}

impl Package {
    /// The name of the environment that it is installed in.
    pub(crate) fn environment(&self) -> &str {
        self.environment.as_ref().unwrap_or(&self.service)
    }
}

#[cfg(test)]
impl Package {
    /// One of this version.
    pub(crate) fn of(package: &str, service: &str, version: &str) -> Self {
        let [package, service, version] = [package, service, version].map(str::to_owned);
        Self { package, service, environment: None, version, note: None }
    }
}

/// A program of a Go module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) program: String,
    pub(crate) service: String,
    pub(crate) source: String,
    pub(crate) version: String,
    pub(crate) note: Option<String>,
}

/// A program of our own around a peer's libraries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub(crate) program: String,
    pub(crate) service: String,
    pub(crate) source: String,
    pub(crate) note: Option<String>,
}

/// The whole table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) peer: Vec<Peer>,
    #[serde(default)]
    pub(crate) python: Vec<Package>,
    #[serde(default)]
    pub(crate) node: Vec<Package>,
    #[serde(default)]
    pub(crate) go: Vec<Tool>,
    #[serde(default)]
    pub(crate) built: Vec<Program>,
}

/// The peers of this repository.
pub(crate) fn read(repository: &Path) -> Result<Table> {
    let path = repository.join("peers/peers.toml");
    let text = fs::read_to_string(&path).context("cannot read peers/peers.toml")?;
    toml::from_str(&text).context("peers/peers.toml")
}

/// The first word that is a dotted number, such as `7.0.15` in `Redis server v=7.0.15 sha=0`.
pub(crate) fn version_in(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c))
        .map(|word| word.trim_matches('.'))
        .find(|word| word.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_this_repository_is_read() {
        let repository = crate::process::repository();
        let Table { peer: peers, built, .. } = read(&repository).unwrap();
        for program in built {
            assert!(repository.join(&program.source).is_file(), "{}", program.source);
        }
        assert!(peers.iter().any(|peer| peer.program == "memcached"));
        for peer in peers {
            assert_eq!(version_in(&peer.version), Some(peer.version.as_str()));
            assert!(!peer.shows.is_empty());
        }
    }

    #[test]
    fn an_environment_that_a_suite_names_is_one_that_is_made() {
        let repository = crate::process::repository();
        let made = read(&repository).unwrap().python;
        for suite in fs::read_dir(repository.join("suites")).unwrap() {
            let path = suite.unwrap().path();
            // A folder is none, and has none.
            let text = fs::read_to_string(&path).unwrap_or_default();
            for rest in text.split("target/venv/").skip(1) {
                let name = rest.split('/').next().unwrap_or_default();
                let is_made = made.iter().any(|package| package.environment() == name);
                assert!(is_made, "{}: {name}", path.display());
            }
        }
    }

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        assert_eq!(version_in("memcached 1.6.18\n"), Some("1.6.18"));
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64";
        assert_eq!(version_in(redis), Some("7.0.15"));
        assert_eq!(version_in("libmemcached-tools\t1.1.4-1\n"), Some("1.1.4"));
        assert_eq!(version_in("version 12."), None);
    }
}
