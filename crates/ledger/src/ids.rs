//! The typed ids of rows that others refer to.

use std::fmt;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::table::{Declared, Stored};

/// Defines the typed id of a table's rows.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident of $table:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(i64);

        impl $name {
            /// The number itself, as stored.
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl From<i64> for $name {
            fn from(id: i64) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }

        impl Declared for $name {
            const STORED: Stored = Stored { refers: Some($table), ..Stored::of("INTEGER") };
        }
    )+};
}

ids! {
    /// A row of `suite`.
    SuiteId of "suite";
    /// A row of `fingerprint`.
    FingerprintId of "fingerprint";
    /// A row of `run`; it only counts up.
    RunId of "run";
    /// A row of `target`.
    TargetId of "target";
    /// A row of `point`.
    PointId of "point";
    /// A row of `round`.
    RoundId of "round";
    /// A row of `trial`.
    TrialId of "trial";
    /// A row of `series`.
    SeriesId of "series";
}
