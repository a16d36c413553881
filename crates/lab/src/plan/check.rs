//! Checks that several parts of a suite share.

use std::collections::BTreeSet;

use super::error::{Source, SuiteError};
use crate::cpus::cpus_here;

pub(super) type Result<T> = std::result::Result<T, Box<SuiteError>>;

pub(super) fn unique<'a>(
    source: &Source,
    key: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(source.error_at(key, format!("two are called \"{name}\""), None));
        }
    }
    Ok(())
}

pub(super) fn check_cpus(source: &Source, key: &str, cpus: &[usize]) -> Result<()> {
    let here = cpus_here();
    match cpus.iter().find(|cpu| !here.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let message = format!("there is no CPU {cpu} here, only {here:?}");
            let help = "name CPUs of this host, or leave `cpus` out to use all";
            Err(source.error_at(key, message, Some(help.into())))
        }
    }
}
