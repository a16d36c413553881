//! What a target speaks: a dialect with its options.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::counters::Counters;
use crate::part::{SpecError, read_table};
#[cfg(feature = "tls")]
use crate::tls::TlsOptions;

/// How a dialect reaches its target, which says what client a workload makes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A [`Dialect`](crate::Dialect) over a stream that the engine owns: TCP or a Unix socket.
    Stream,
    /// A [`Dialect`](crate::Dialect) in datagrams that the engine sends: every request is one,
    /// and so is every piece of an answer.
    Datagrams,
    /// A [`Caller`](crate::Caller), whose calls block. Each slot is a thread.
    Calls,
    /// A [`Busy`](crate::Busy), whose calls to the target take nanoseconds. Each slot is a thread.
    Busy,
    /// A [`Busy`](crate::Busy) without a target: it is evaluated in a process of its own.
    InProcess,
}

/// One way to say a service's operations.
#[derive(Clone, Copy)]
pub struct DialectRow {
    /// Its name in `speaks = "…"`.
    pub name: &'static str,
    /// One sentence for `--help` and error messages.
    pub doc: &'static str,
    /// How it reaches its target.
    pub reach: Reach,
    /// How a service that speaks it is asked for its own counters, where the protocol has words
    /// for that.
    pub counters: Option<&'static dyn Counters>,
    /// Why this program can't speak it, where it can't: a feature that it was built without.
    pub missing: Option<&'static str>,
    /// Refuses options that the dialect doesn't have.
    pub check_options: fn(&Speaks) -> Result<(), SpecError>,
    /// Refuses options that name files which can't be read. They are relative to the suite's
    /// folder.
    pub check_files: fn(&Speaks, &Path) -> Result<(), SpecError>,
}

impl DialectRow {
    /// A dialect without options, and without words for a service's own counters.
    pub const fn new(name: &'static str, doc: &'static str, reach: Reach) -> Self {
        let check_options = |speaks: &Speaks| speaks.read::<NoOptions>().map(drop);
        let check_files = |_: &Speaks, _: &Path| Ok(());
        Self { name, doc, reach, counters: None, missing: None, check_options, check_files }
    }

    /// The same with counters.
    #[must_use]
    pub const fn with_counters(self, counters: &'static dyn Counters) -> Self {
        Self { counters: Some(counters), ..self }
    }

    /// The same, which this program can't speak for a reason.
    #[must_use]
    pub const fn lacking(self, reason: &'static str) -> Self {
        Self { missing: Some(reason), ..self }
    }

    /// The same with options, which are read as `T`.
    #[must_use]
    pub const fn with_options<T: DeserializeOwned>(self) -> Self {
        let check_options = |speaks: &Speaks| speaks.read::<T>().map(drop);
        Self { check_options, ..self }
    }

    /// The same, whose options name files.
    #[must_use]
    pub const fn with_files(self, check: fn(&Speaks, &Path) -> Result<(), SpecError>) -> Self {
        Self { check_files: check, ..self }
    }
}

impl std::fmt::Debug for DialectRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

/// What a target speaks: `speaks = "pvaccess"`, or `speaks = { pvaccess = { pipeline = true } }`.
#[derive(Clone, Debug)]
pub struct Speaks {
    /// The dialect.
    pub dialect: &'static DialectRow,
    /// Its options.
    pub options: toml::Table,
}

impl Speaks {
    /// A dialect as it is without options.
    pub fn plainly(dialect: &'static DialectRow) -> Self {
        Self { dialect, options: toml::Table::new() }
    }

    /// Refuses a file of authorities that can't be read, which these options of TLS name.
    ///
    /// # Errors
    /// Names the file, and why.
    #[cfg(feature = "tls")]
    pub fn check_authorities(
        &self,
        tls: Option<&TlsOptions>,
        folder: &Path,
    ) -> Result<(), SpecError> {
        let wrong = |why: String| SpecError::new(format!("speaks.{}.ca", self.dialect.name), why);
        tls.map_or(Ok(()), |tls| tls.trust.check(folder)).map_err(wrong)
    }

    /// Reads the options as `T`, which refuses fields that it doesn't know.
    ///
    /// # Errors
    /// Names the option that `T` can't take.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        let key = format!("speaks.{}", self.dialect.name);
        read_table(&key, self.options.clone(), &[])
    }
}
