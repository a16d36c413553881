//! The words that columns may hold, as enums.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::table::{Check, Declared, Stored};

/// Defines an enum whose variants are stored as one lower-case word each.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// The word stored in the ledger and used in JSON.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }

            /// The one of this word.
            pub fn of_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl Declared for $name {
            const STORED: Stored =
                Stored { check: Check::Words(&[$($word),+]), ..Stored::of("TEXT") };
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.word().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                $name::of_word(value.as_str()?).ok_or(FromSqlError::InvalidType)
            }
        }
    };
}

words! {
    /// The state of a run.
    #[derive(Default)]
    RunState {
        /// It is being measured.
        #[default]
        Running = "running",
        /// It came to its end.
        Finished = "finished",
        /// It was stopped, or its process is gone.
        Interrupted = "interrupted",
        /// It ended with an error.
        Failed = "failed"
    }
}

words! {
    /// The question of a run.
    RunKind {
        /// The figures of targets at each point.
        Sweep = "sweep",
        /// Whether one target is better than another: `loadline compare`.
        Comparison = "comparison",
        /// Whether each change on top of another helped: `loadline ladder`.
        Ladder = "ladder",
        /// The highest load: `loadline capacity`.
        Capacity = "capacity"
    }
}

words! {
    /// Whether a trial or slice may be compared.
    #[derive(Default)]
    Validity {
        /// Nothing speaks against it.
        Valid = "valid",
        /// Something else used the host's cores, or the host stalled.
        Disturbed = "disturbed",
        /// The load wasn't what it should have been, or the trial wasn't finished.
        #[default]
        Invalid = "invalid"
    }
}

words! {
    /// Whether the target's data were in cache when it was measured.
    #[derive(Default)]
    DataState {
        /// Caches were dropped, or the target had just been started on kept data.
        #[default]
        Cold = "cold",
        /// The target was warmed up before it was measured.
        Warm = "warm"
    }
}

words! {
    /// The quantity of a histogram.
    #[derive(Default)]
    HistogramKind {
        /// Completion − scheduled time.
        #[default]
        Latency = "latency",
        /// Completion − actual send.
        Service = "service",
        /// Send − max(scheduled time, moment a slot was free).
        Lag = "lag"
    }
}

words! {
    /// The phase of a trial in which its target failed it.
    FailedAt {
        /// It didn't become ready.
        Start = "start",
        /// Its data couldn't be prepared.
        Prepare = "prepare",
        /// It failed under the load before the measured one.
        WarmUp = "warm-up",
        /// It failed while it was measured.
        Measure = "measure"
    }
}

words! {
    /// The outcome of a requirement at one point.
    #[derive(Default)]
    RequirementOutcome {
        /// It held.
        Held = "held",
        /// It was broken.
        Broken = "broken",
        /// Inconclusive over the valid trials.
        #[default]
        CantTell = "cant_tell"
    }
}

words! {
    /// Which direction of a figure is good.
    #[derive(Default)]
    Better {
        /// More is better.
        #[default]
        Higher = "higher",
        /// Less is better.
        Lower = "lower"
    }
}

words! {
    /// When a group of clients sends its requests.
    #[derive(Default)]
    ArrivalsKind {
        /// A slot sends when it is answered.
        #[default]
        Closed = "closed",
        /// And after a pause.
        Think = "think",
        /// A list of operations, one after another.
        Steps = "steps",
        /// At scheduled times.
        Schedule = "schedule",
        /// A slot receives updates as they come.
        Subscribe = "subscribe"
    }
}

words! {
    /// The decision on a rung.
    Decision {
        /// The change stays.
        Kept = "kept",
        /// The change was backed out.
        BackedOut = "backed out"
    }
}
