//! Checks that several parts of a suite share.

use std::collections::BTreeSet;

use super::error::{Source, SuiteError};
use crate::cpus::cpus_here;

pub(super) type Result<T> = std::result::Result<T, Box<SuiteError>>;

/// Refuses a name that comes twice; `key` says where the one of this number stands.
pub(super) fn unique<'a>(
    source: &Source,
    key: &dyn Fn(usize) -> String,
    names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let message = format!("two are called \"{name}\"");
            return Err(source.error_at(&key(index), message, None));
        }
    }
    Ok(())
}

/// All of them; or the mistakes of all, where there are any.
pub(super) fn all_of<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut found) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => found = Some(together(found, error)),
        }
    }
    found.map_or(Ok(values), Err)
}

/// Both of them; or the mistakes of both.
pub(super) fn both<A, B>(a: Result<A>, b: Result<B>) -> Result<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(second)) => Err(first.with(*second)),
    }
}

fn together(found: Option<Box<SuiteError>>, error: Box<SuiteError>) -> Box<SuiteError> {
    match found {
        None => error,
        Some(found) => found.with(*error),
    }
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
