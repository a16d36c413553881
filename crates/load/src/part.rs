//! A service's part of a suite's `[workload]`, and what can be wrong with it.

use std::borrow::Cow;
use std::path::Path;

use serde::de::DeserializeOwned;

/// A workload that can't be. `key` is the dotted key of the suite that it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The dotted key, e.g. `workload.mix`.
    pub key: Cow<'static, str>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl SpecError {
    /// An error about the value at `key`.
    pub fn new(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// The part of `[workload]` that belongs to its service: every key that is not one of
/// [`WorkloadSpec`](crate::WorkloadSpec)'s own.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The service's name, for messages.
    pub service: &'static str,
    /// The keys with their values.
    pub table: &'a toml::Table,
    /// The folder of the suite: files that the part names are relative to it.
    pub folder: &'a Path,
    /// Where random numbers start.
    pub seed: u64,
}

impl Part<'_> {
    /// An error about the value at `key` of this part.
    pub fn error(&self, key: &str, message: impl Into<String>) -> SpecError {
        SpecError::new(format!("workload.{key}"), message)
    }

    /// Reads the whole part as `T`, which refuses fields that it doesn't know.
    ///
    /// # Errors
    /// Names the key that `T` can't take.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        read_table("workload", self.table.clone(), COMMON)
    }
}

/// The keys of `[workload]` that are the same for every service.
pub(crate) const COMMON: &[&str] = &["service", "operation", "mix", "steps", "seed"];

/// Reads `table`, which stands at `key` of a suite, as `T`; `also` are fields that are read
/// elsewhere, for the list of those that are known.
///
/// # Errors
/// Names the dotted key of what `T` can't take.
pub fn read_table<T: DeserializeOwned>(
    key: &str,
    table: toml::Table,
    also: &[&str],
) -> Result<T, SpecError> {
    serde_path_to_error::deserialize(table).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { key.to_owned() } else { format!("{key}.{path}") };
        let message = error.inner().message();
        // Of a table within the part, only its own fields are known.
        let is_own = path.split('.').count() == 1;
        let message = if is_own { with_known(message, also) } else { message.to_owned() };
        SpecError::new(place, message)
    })
}

/// Adds fields that are known elsewhere to "unknown field `x`, expected one of `a`, `b`".
fn with_known(message: &str, also: &[&str]) -> String {
    let also: String = also.iter().map(|name| format!("`{name}`, ")).collect();
    for start in [", expected one of ", ", expected "] {
        if message.starts_with("unknown field")
            && let Some((unknown, known)) = message.split_once(start)
        {
            return format!("{unknown}, expected one of {also}{known}");
        }
    }
    message.to_owned()
}
