//! Peers that come from Python's registry: an environment for each service, in
//! `target/venv/SERVICE`, and for each version that is compared with another one.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::table::Package;
use crate::process;

/// An environment, a service's by its name.
pub(crate) fn folder(target: &Path, environment: &str) -> PathBuf {
    target.join("venv").join(environment)
}

/// Where its packages lie.
pub(crate) fn site_packages(environment: &Path) -> Option<PathBuf> {
    let libraries = fs::read_dir(environment.join("lib")).ok()?;
    let found = libraries.filter_map(Result::ok).map(|entry| entry.path().join("site-packages"));
    found.into_iter().find(|path| path.is_dir())
}

/// The version of a package that is there.
pub(crate) fn version(target: &Path, package: &Package) -> Option<String> {
    let site = site_packages(&folder(target, package.environment()))?;
    // A package's folder of metadata is called NAME-VERSION.dist-info, with _ for -.
    let head = format!("{}-", package.package.replace('-', "_"));
    let names = fs::read_dir(site).ok()?.filter_map(Result::ok).map(|entry| entry.file_name());
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    names
        .into_iter()
        .find_map(|name| Some(name.strip_prefix(&head)?.strip_suffix(".dist-info")?.to_owned()))
}

/// Installs the stated versions of these packages, each into its environment.
pub(crate) fn install(target: &Path, packages: &[&Package]) -> Result<()> {
    if process::find("python3").is_none() {
        bail!("there is no python3 here; bring it with your package manager");
    }
    let mut names: Vec<&str> = packages.iter().map(|package| package.environment()).collect();
    names.dedup();
    for name in names {
        let here = packages.iter().filter(|package| package.environment() == name);
        let wanted = here.map(|package| format!("{}=={}", package.package, package.version));
        environment(target, name, &wanted.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Makes an environment, unless it is there, and installs into it what is `wanted`, as pip
/// writes it. Gives its Python.
pub(crate) fn environment(
    target: &Path,
    name: &str,
    wanted: &[impl AsRef<OsStr>],
) -> Result<PathBuf> {
    let environment = folder(target, name);
    let python = environment.join("bin/python");
    if !python.exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    process::run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(wanted))?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_there_is_found_with_its_version() {
        let target = tempfile::tempdir().unwrap();
        let package = Package::of("spvirit-tools", "records", "0.4.1");
        assert_eq!(version(target.path(), &package), None);
        let site = target.path().join("venv/records/lib/python3.11/site-packages");
        fs::create_dir_all(site.join("spvirit_tools-0.4.2.dist-info")).unwrap();
        fs::create_dir_all(site.join("spvirit-9.dist-info")).unwrap();
        assert_eq!(version(target.path(), &package).as_deref(), Some("0.4.2"));
    }
}
