//! What `arrivals` of a suite means.

use std::path::Path;

use base::units::{Rate, Span};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::drive::{Arrivals, Spacing, Stretch};

/// `arrivals = …` as written.
#[derive(Clone, Debug, Default)]
pub(crate) enum ArrivalsSpec {
    #[default]
    Closed,
    Steps,
    Subscribe,
    Table(Box<Table>),
}

/// `arrivals = { … }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    think: Option<Span>,
    pause: Option<Span>,
    rate: Option<Rate>,
    /// A request each time that this much simulated time has passed.
    every: Option<Span>,
    spacing: Option<SpacingName>,
    bursts: Option<BurstsSpec>,
    steps: Option<Vec<StepSpec>>,
    trace: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SpacingName {
    Constant,
    Poisson,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstsSpec {
    on: Span,
    off: Span,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSpec {
    rate: Option<Rate>,
    #[serde(rename = "for")]
    length: Option<Span>,
}

impl StepSpec {
    /// The step of this number, from 1.
    fn resolve(&self, number: usize) -> Result<Stretch, String> {
        let rate =
            self.rate.ok_or_else(|| format!("step {number} has no rate: rate = \"1k/s\""))?;
        let length =
            self.length.ok_or_else(|| format!("step {number} has no time: for = \"2s\""))?;
        if length.ns == 0 {
            return Err(format!("step {number} takes no time: for = \"2s\""));
        }
        Ok(Stretch { rate: check(rate)?, length: Some(length) })
    }
}

impl<'de> Deserialize<'de> for ArrivalsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "\"closed\", \"steps\", \"subscribe\", { think = \"1s\" }, \
             { pause = \"200ms\" }, \
             { rate = \"50k/s\", spacing = \"poisson\" }, { every = \"5s\" }, \
             { steps = [ … ] } or { trace = \"FILE\" }";
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(word) if word == "closed" => Ok(Self::Closed),
            toml::Value::String(word) if word == "steps" => Ok(Self::Steps),
            toml::Value::String(word) if word == "subscribe" => Ok(Self::Subscribe),
            toml::Value::Table(table) => Table::deserialize(table)
                .map(|table| Self::Table(Box::new(table)))
                .map_err(|error| D::Error::custom(error.message())),
            _ => Err(D::Error::custom(format!("arrivals are {EXPECTED}"))),
        }
    }
}

const ONE_OF: &str = "say exactly one of think, pause, rate, every, steps, trace";

const SPACED: &str = "spacing and bursts need a rate, for bursts the mean over on and off: \
                      rate = \"5k/s\"";

const NO_PAUSE: &str = "bursts without a pause between are one even rate: leave bursts out, or \
                        give them one, off = \"90ms\"";

/// Times are whole nanoseconds, so no schedule is denser.
const MAX_PER_SECOND: f64 = 1e9;

/// A trace may hold at most this many arrivals.
const MAX_TRACED: usize = 50_000_000;

/// Its first arrival comes at the latest after this: a later time counts from something else than
/// the trace's begin.
const MAX_BEGIN_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Its file may be at most this long.
const MAX_TRACE_BYTES: u64 = 2 << 30;

impl ArrivalsSpec {
    /// Whether it is given in simulated time.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Table(table) if table.every.is_some())
    }

    /// What is written means this, where simulated time runs `time_scale` times as fast. A trace is
    /// read from beside the suite, in `folder`.
    pub(crate) fn resolve(&self, folder: &Path, time_scale: f64) -> Result<Arrivals, String> {
        let table = match self {
            Self::Closed => return Ok(Arrivals::Closed),
            Self::Steps => return Ok(Arrivals::Steps),
            Self::Subscribe => return Ok(Arrivals::Subscribe { pause: Span { ns: 0 } }),
            Self::Table(table) => table,
        };
        let Table { think, pause, rate, every, spacing, bursts, steps, trace } = &**table;
        let is_spaced = spacing.is_some() || bursts.is_some();
        if is_spaced && (think.is_some() || pause.is_some() || trace.is_some()) {
            return Err("spacing and bursts belong to rate, every or steps: leave them out".into());
        }
        let spacing = match (spacing, bursts) {
            (Some(_), Some(_)) => return Err("say either spacing or bursts".into()),
            (None, Some(BurstsSpec { on, off })) if on.ns > 0 && off.ns > 0 => {
                Spacing::Bursts { on: *on, off: *off }
            }
            (None, Some(BurstsSpec { on, .. })) if on.ns > 0 => return Err(NO_PAUSE.into()),
            (None, Some(_)) => return Err("a burst needs a length: on = \"10ms\"".into()),
            (Some(SpacingName::Poisson), None) => Spacing::Poisson,
            (Some(SpacingName::Constant) | None, None) => Spacing::Constant,
        };
        if let Some(pause) = pause {
            let others = think.is_some() || rate.is_some() || every.is_some();
            return match others || steps.is_some() || trace.is_some() {
                true => Err("a pause belongs to streams: say it alone".into()),
                false => Ok(Arrivals::Subscribe { pause: *pause }),
            };
        }
        if let Some(every) = every {
            if think.is_some() || rate.is_some() || steps.is_some() || trace.is_some() {
                return Err(ONE_OF.into());
            }
            if every.ns == 0 {
                return Err("a schedule needs some time between requests: every = \"5s\"".into());
            }
            let per_second = time_scale * 1e9 / every.ns as f64;
            check(Rate { per_second })?;
            return Ok(Arrivals::simulated(*every, time_scale, spacing));
        }
        match (think, rate, steps, trace) {
            (Some(pause), None, None, None) => Ok(Arrivals::Think(*pause)),
            (None, Some(rate), None, None) => Ok(Arrivals::open(check(*rate)?, spacing)),
            (None, None, Some(steps), None) if steps.is_empty() => {
                Err("there is no step: steps = [{ rate = \"1k/s\", for = \"2s\" }, …]".into())
            }
            (None, None, Some(steps), None) => {
                let stretches = (1..).zip(steps).map(|(number, step)| step.resolve(number));
                Ok(Arrivals::scheduled(stretches.collect::<Result<_, _>>()?, spacing))
            }
            (None, None, None, Some(file)) => traced(&folder.join(file)),
            (None, None, None, None) if is_spaced => Err(SPACED.into()),
            _ => Err(ONE_OF.into()),
        }
    }
}

fn check(rate: Rate) -> Result<Rate, String> {
    match rate.per_second > 0.0 && rate.per_second <= MAX_PER_SECOND {
        true => Ok(rate),
        false => Err("a schedule needs rates above 0/s, and at most 1000M/s".to_owned()),
    }
}

/// Reads arrival times in seconds, one a line, before the first comma; `#` begins a comment.
fn traced(file: &Path) -> Result<Arrivals, String> {
    let name = file.display();
    let about = std::fs::metadata(file).map_err(|error| format!("{name}: {error}"))?;
    if !about.is_file() || about.len() > MAX_TRACE_BYTES {
        return Err(format!("{name}: no file of at most {MAX_TRACE_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let mut trace_ns = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(['#', ',']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let is_time = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        let seconds = line.parse::<f64>().ok().filter(is_time);
        let ns = seconds.map(|seconds| (seconds * 1e9).round() as u64);
        if trace_ns.is_empty() && ns.is_some_and(|ns| ns > MAX_BEGIN_NS) {
            return Err(late_begin(&name.to_string(), number + 1, line));
        }
        match ns {
            Some(ns) if trace_ns.last().is_none_or(|last| *last <= ns) => trace_ns.push(ns),
            _ => {
                let line_number = number + 1;
                let problem = "is no time in seconds, or is before the last one";
                return Err(format!("{name}:{line_number}: \"{line}\" {problem}"));
            }
        }
        if trace_ns.len() > MAX_TRACED {
            return Err(format!("{name}: more than {MAX_TRACED} arrivals"));
        }
    }
    if trace_ns.is_empty() {
        return Err(format!("{name}: no arrivals"));
    }
    Ok(Arrivals::traced(trace_ns))
}

/// What is wrong with a trace whose first time is more than a day after its begin.
fn late_begin(name: &str, line_number: usize, first: &str) -> String {
    format!(
        "{name}:{line_number}: the first arrival comes after {first} s, which is more than a day: \
         times count in seconds from the trace's begin, so subtract {first} from each"
    )
}

/// What `arrivals = TEXT` means, for tests of what follows schedules.
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test's own text is right")]
pub(crate) fn arrivals_of(text: &str) -> Arrivals {
    #[derive(Deserialize)]
    struct Suite {
        arrivals: ArrivalsSpec,
    }
    let suite: Suite = toml::from_str(&format!("arrivals = {text}")).unwrap();
    suite.arrivals.resolve(Path::new(""), 100.0).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arrivals, String> {
        #[derive(Deserialize)]
        struct Suite {
            arrivals: ArrivalsSpec,
        }
        let suite: Suite = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        suite.arrivals.resolve(Path::new("/nowhere"), 100.0)
    }

    #[test]
    fn every_form_is_read_and_said_in_words() {
        let said = |text| read(text).unwrap().to_string();
        assert_eq!(said("arrivals = 'closed'"), "closed");
        assert_eq!(said("arrivals = 'steps'"), "steps");
        assert_eq!(said("arrivals = { think = '1s' }"), "think 1 s");
        assert_eq!(said("arrivals = 'subscribe'"), "subscribe");
        assert_eq!(said("arrivals = { pause = '200ms' }"), "subscribe, pause 200 ms");
        let poisson = "arrivals = { rate = '50k/s', spacing = 'poisson' }";
        assert_eq!(said(poisson), "open 50k/s poisson");
        let simulated = "open 20/s constant, every 5 s at 100 × time";
        assert_eq!(said("arrivals = { every = '5s' }"), simulated);
        let steps =
            "arrivals = { steps = [{ rate = '1k/s', for = '1s' }, { rate = '2k/s', for = '1s' }] }";
        assert_eq!(said(steps), "open 1k/s → 2k/s constant");
    }

    #[test]
    fn a_trace_counts_from_its_begin() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.csv");
        let with = |text: &str| {
            std::fs::write(&file, text).unwrap();
            traced(&file)
        };
        assert_eq!(
            with("# late\n86400.0,x\n86400.5").unwrap().end().unwrap().ns,
            86_400_501_000_000
        );
        for first in ["1700000000.25", "1700000000250"] {
            let said = with(&format!("# epoch\n{first},get\n1800000000000,get\n")).unwrap_err();
            let place = format!("t.csv:2: the first arrival comes after {first} s");
            assert!(said.contains(&place) && said.contains(&format!("subtract {first}")), "{said}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_said() {
        assert!(read("arrivals = 'open'").unwrap_err().contains("think = \"1s\""));
        assert!(read("arrivals = { pause = '1s', think = '1s' }").unwrap_err().contains("alone"));
        assert!(read("arrivals = { rate = '0/s' }").unwrap_err().contains("above 0/s"));
        assert!(read("arrivals = { rate = '2_000M/s' }").unwrap_err().contains("at most"));
        assert!(read("arrivals = { rate = 5 }").unwrap_err().contains("a rate such as"));
        assert!(read("arrivals = { rat = '5/s' }").unwrap_err().contains("unknown field"));
        assert!(read("arrivals = { think = '1s', rate = '1/s' }").unwrap_err().contains("exactly"));
        assert!(read("arrivals = { every = '1s', rate = '1/s' }").unwrap_err().contains("exactly"));
        assert!(read("arrivals = { every = '0s' }").unwrap_err().contains("some time"));
        let said = |text: &str| read(text).unwrap_err();
        assert!(said("arrivals = { steps = [] }").contains("there is no step: steps = [{ rate"));
        let steps =
            |second| format!("arrivals = {{ steps = [{{ rate = '1/s', for = '1s' }}, {second}] }}");
        assert!(said(&steps("{ rate = '2/s' }")).contains("step 2 has no time: for"));
        assert!(said(&steps("{ for = '2s' }")).contains("step 2 has no rate"));
        assert!(said(&steps("{ rate = '2/s', for = '0s' }")).contains("step 2 takes no time"));
        let bursts = "bursts = { on = '10ms', off = '90ms' }";
        assert!(said(&format!("arrivals = {{ {bursts} }}")).contains("the mean over on and off"));
        let think = format!("arrivals = {{ think = '1s', {bursts} }}");
        assert!(said(&think).contains("leave them out"));
        assert!(read("arrivals = { trace = 'gone' }").unwrap_err().contains("/nowhere/gone"));
        let still = "arrivals = { rate = '1/s', bursts = { on = '10ms', off = '0s' } }";
        assert!(said(still).contains("one even rate: leave bursts out"), "{}", said(still));
        let endless = read("arrivals = { trace = '/dev/zero' }").unwrap_err();
        assert!(endless.contains("/dev/zero: no file of at most"), "{endless}");
    }
}
