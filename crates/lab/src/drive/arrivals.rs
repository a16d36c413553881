//! When requests are sent: closed, with think time, or on a schedule that does not wait.

use std::sync::Arc;

use base::units::{Rate, Span};

/// When requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A slot sends when it is answered.
    Closed,
    /// A slot does the workload's steps in order, once.
    Steps,
    /// A slot sends again this long after it was answered.
    Think(Span),
    /// On a schedule; a request without a free slot waits, and its waiting counts.
    Open(Arc<Schedule>),
    /// A slot subscribes to as many keys as its depth, and takes what comes.
    Subscribe {
        /// A slow reader: nothing is read for this long after an update.
        pause: Span,
    },
}

/// When requests are due, from the start of a slice, or of a trial in one piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Rates one after another; the last goes on for ever unless it has a length.
    pub stretches: Vec<Stretch>,
    /// How requests are spread within a stretch.
    pub spacing: Spacing,
    /// Recorded times instead of rates, in nanoseconds and ascending.
    pub trace_ns: Vec<u64>,
    /// In words, for labels.
    words: String,
}

/// One rate for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Requests per second.
    pub rate: Rate,
    /// For how long; `None` is to the end.
    pub length: Option<Span>,
}

/// How requests are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Constant,
    /// With exponentially distributed gaps: many independent senders.
    Poisson,
    /// Evenly within bursts that keep the mean rate.
    Bursts {
        /// The length of a burst.
        on: Span,
        /// The pause after it.
        off: Span,
    },
}

impl std::fmt::Display for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Steps => f.write_str("steps"),
            Self::Think(pause) => write!(f, "think {pause}"),
            Self::Open(schedule) => f.write_str(&schedule.words),
            Self::Subscribe { pause } if pause.ns == 0 => f.write_str("subscribe"),
            Self::Subscribe { pause } => write!(f, "subscribe, pause {pause}"),
        }
    }
}

impl Arrivals {
    /// Whether slots subscribe instead of asking.
    pub fn subscribes(&self) -> bool {
        matches!(self, Self::Subscribe { .. })
    }

    /// One rate for ever.
    pub fn open(rate: Rate, spacing: Spacing) -> Self {
        Self::scheduled(vec![Stretch { rate, length: None }], spacing)
    }

    /// One request in each `every` of simulated time, which runs `scale` times as fast.
    pub fn simulated(every: Span, scale: f64, spacing: Spacing) -> Self {
        let rate = Rate { per_second: scale * 1e9 / every.ns as f64 };
        match Self::open(rate, spacing) {
            Self::Open(schedule) => {
                let words = format!("{}, every {every} at {scale} × time", schedule.words);
                Self::Open(Arc::new(Schedule { words, ..(*schedule).clone() }))
            }
            other => other,
        }
    }

    /// Rates one after another.
    pub fn scheduled(stretches: Vec<Stretch>, spacing: Spacing) -> Self {
        let rates: Vec<_> = stretches.iter().map(|one| one.rate.to_string()).collect();
        let spread = match spacing {
            Spacing::Constant => "constant".to_owned(),
            Spacing::Poisson => "poisson".to_owned(),
            Spacing::Bursts { on, off } => format!("bursts {on} on {off} off"),
        };
        let words = format!("open {} {spread}", rates.join(" → "));
        Self::Open(Arc::new(Schedule { stretches, spacing, trace_ns: Vec::new(), words }))
    }

    /// How long a run has to be for all arrivals of a schedule that has an end. A trace's end is
    /// the millisecond after its last arrival: those of a run lie before its end.
    pub fn end(&self) -> Option<Span> {
        const MS: u64 = 1_000_000;
        let Self::Open(schedule) = self else { return None };
        let of_trace = schedule.trace_ns.last().map(|ns| (ns / MS).saturating_add(1));
        let of_trace = of_trace.map(|ms| Span { ns: ms.saturating_mul(MS) });
        let lengths = schedule.stretches.iter().map(|stretch| stretch.length.map(|span| span.ns));
        let of_rates = || lengths.sum::<Option<u64>>().filter(|ns| *ns > 0).map(|ns| Span { ns });
        of_trace.or_else(of_rates)
    }

    /// Whether it is a schedule of rates, not of recorded times.
    pub fn is_of_rates(&self) -> bool {
        matches!(self, Self::Open(schedule) if !schedule.stretches.is_empty())
    }

    /// What a schedule asks for in its stretch of this place, in words.
    pub fn stretch_name(&self, ordinal: usize) -> String {
        let Self::Open(schedule) = self else { return String::new() };
        let bursts = match schedule.spacing {
            Spacing::Bursts { .. } => " in bursts",
            Spacing::Constant | Spacing::Poisson => "",
        };
        match schedule.stretches.get(ordinal) {
            Some(stretch) => format!("{}{bursts}", stretch.rate),
            None => format!("tenth {}", ordinal + 1),
        }
    }

    /// How often bursts come, and how long the shortest of several rates lasts, where each has an
    /// end.
    pub fn bursts(&self) -> Option<(Span, Option<Span>)> {
        let Self::Open(schedule) = self else { return None };
        let Spacing::Bursts { on, off } = schedule.spacing else { return None };
        let lengths = schedule.stretches.iter().filter_map(|stretch| stretch.length);
        Some((Span { ns: on.ns.saturating_add(off.ns) }, lengths.min_by_key(|span| span.ns)))
    }

    /// Recorded times, in nanoseconds and ascending.
    pub fn traced(trace_ns: Vec<u64>) -> Self {
        let words = format!("trace of {} arrivals", trace_ns.len());
        let (stretches, spacing) = (Vec::new(), Spacing::Constant);
        Self::Open(Arc::new(Schedule { stretches, spacing, trace_ns, words }))
    }
}
