//! Peers that come from Node's registry: npm puts those of a service into
//! `target/npm/SERVICE/node_modules`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::table::Package;
use crate::process;

/// Where the packages of a service lie.
pub(crate) fn folder(target: &Path, service: &str) -> PathBuf {
    target.join("npm").join(service)
}

/// The version of a package that is there.
pub(crate) fn version(target: &Path, package: &Package) -> Option<String> {
    let modules = folder(target, &package.service).join("node_modules");
    let text = fs::read_to_string(modules.join(&package.package).join("package.json")).ok()?;
    let described: serde_json::Value = serde_json::from_str(&text).ok()?;
    described["version"].as_str().map(str::to_owned)
}

/// Installs the stated version of a package, without running scripts of it.
pub(crate) fn install(target: &Path, package: &Package) -> Result<()> {
    if process::find("npm").is_none() {
        bail!("{} needs npm; bring it with your package manager", package.package);
    }
    let folder = folder(target, &package.service);
    fs::create_dir_all(&folder).context("cannot make target/npm")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    process::run(npm.arg(&folder).arg(format!("{}@{}", package.package, package.version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_there_is_found_with_its_version() {
        let target = tempfile::tempdir().unwrap();
        let package = Package::of("@grpc/grpc-js", "rpc", "1.14.7");
        assert_eq!(version(target.path(), &package), None);
        let place = target.path().join("npm/rpc/node_modules/@grpc/grpc-js");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("package.json"), r#"{"version": "1.14.6"}"#).unwrap();
        assert_eq!(version(target.path(), &package).as_deref(), Some("1.14.6"));
    }
}
