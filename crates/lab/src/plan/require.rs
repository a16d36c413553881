//! Requirements: what must hold for the first target, such as `"latency.p99" = "< 1ms"`.

use workload::units::{ByteCount, Rate, Share, Span};

/// How a figure is compared with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `=`
    Equal,
}

/// What must hold for the first target.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// As written: `latency.p99 < 1ms`.
    pub text: String,
    /// The metric, by its name in suites.
    pub metric: &'static str,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in the metric's own unit.
    pub bound: f64,
}

impl Requirement {
    /// Reads the metric and the bound.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    pub fn parse(metric: &str, written: &str) -> Result<Self, String> {
        let known = judge::METRICS;
        let Some(row) = known.iter().find(|row| row.suite == metric) else {
            let near = super::error::nearest(metric, known.iter().map(|row| row.suite));
            let near = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
            return Err(format!("unknown metric{near}"));
        };
        // The longer signs come first, so that `<=` is not read as `<`.
        let signs = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let found = signs
            .iter()
            .find_map(|(sign, comparison)| Some((written.trim().strip_prefix(sign)?, comparison)));
        let (bound, comparison) = found.ok_or_else(|| {
            format!("\"{written}\" starts with none of <, <=, >, >=, =; write e.g. \"< 1ms\"")
        })?;
        Ok(Self {
            text: format!("{metric} {}", written.trim()),
            metric: row.suite,
            comparison: *comparison,
            bound: parse_bound(bound.trim())?,
        })
    }

    /// Whether `value` holds.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.bound,
            Comparison::LessOrEqual => value <= self.bound,
            Comparison::Greater => value > self.bound,
            Comparison::GreaterOrEqual => value >= self.bound,
            Comparison::Equal => value == self.bound,
        }
    }
}

/// A bound in the base unit of its kind: nanoseconds, bytes, a fraction, a rate or a count.
fn parse_bound(text: &str) -> Result<f64, String> {
    if let Ok(number) = text.replace('_', "").parse::<f64>() {
        return Ok(number);
    }
    let time = text.parse::<Span>().map(|span| span.ns as f64);
    let rate = || text.parse::<Rate>().map(|rate| rate.per_second);
    let share = || text.parse::<Share>().map(|share| share.fraction);
    let bytes = || text.parse::<ByteCount>().map(|count| count.bytes as f64);
    time.or_else(|_| rate())
        .or_else(|_| share())
        .or_else(|_| bytes())
        .map_err(|_| format!("\"{text}\" is not a bound such as 0, 1ms, 50k/s, 2% or 64MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_in_base_units() {
        let bound = |text| Requirement::parse("latency.p99", text).map(|r| r.bound);
        assert_eq!(bound("< 1ms"), Ok(1e6));
        assert_eq!(bound(">= 50k/s"), Ok(50_000.0));
        assert_eq!(bound("= 0"), Ok(0.0));
        assert!(bound("1ms").unwrap_err().contains("starts with none"));
        assert!(bound("< soon").unwrap_err().contains("is not a bound"));
        assert!(Requirement::parse("latency.p98", "< 1ms").unwrap_err().contains("did you mean"));
    }

    #[test]
    fn a_bound_holds_or_breaks() {
        let requirement = Requirement::parse("wrong", "= 0").unwrap();
        assert!(requirement.holds(0.0));
        assert!(!requirement.holds(1.0));
    }
}
