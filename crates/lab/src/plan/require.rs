//! Requirements: what must hold for the first target, such as `"latency.p99" = "< 1ms"`.

use std::collections::BTreeMap;

use judge::{Metrics, Unit};

use super::error::nearest;
use super::expression::{Expression, is_scalar, kind_of};
use super::fill::value_at;
use super::near::metrics_listed;
use super::percentile::percentile;

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

/// The signs; the longer ones come first, so that `<=` is not read as `<`.
const SIGNS: [(&str, Comparison); 5] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// Wrong answers, refusals and missing ones together, beside the table of metrics.
pub(crate) const ERRORS: &str = "errors";

/// How the names of shares end: `wrong of those asked`, answered or not. The blanks keep them apart
/// from all that a suite can declare.
pub(crate) const OF_THOSE_ASKED: &str = " of those asked";

/// What counts operations, and may therefore be required as a share of them: `missing < 0.1%`.
const OF_OPERATIONS: [&str; 4] = [ERRORS, "wrong", "refused", "missing"];

/// Shares that can't be above one.
const PARTS_OF_ALL: [&str; 7] =
    ["hit_ratio", "fairness", "generator.busy", ERRORS, "wrong", "refused", "missing"];

/// What must hold for the first target.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// As written: `latency.p99 < 1ms`.
    pub text: String,
    /// What is compared: a metric, or what is derived from metrics and the point's numbers, which
    /// are filled in already.
    pub figure: Expression,
    /// The figure's unit; `None` when it can't be known, as of what a service counts itself.
    pub unit: Option<Unit>,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in base units.
    pub bound: f64,
}

/// What the names in a point's expressions mean.
pub(super) struct Names<'a> {
    /// `[derive]`: names with their expressions.
    pub(super) derived: &'a BTreeMap<String, String>,
    /// The point's suite, for its numbers.
    pub(super) table: &'a toml::Table,
    /// Its metrics.
    pub(super) metrics: &'a Metrics,
}

impl Names<'_> {
    /// A number of the point, such as `clients.connections`.
    fn number(&self, name: &str) -> Option<f64> {
        let value = value_at(self.table, name)?;
        value.as_integer().map(|number| number as f64).or_else(|| value.as_float())
    }

    /// The unit of a metric. Counters of a service have none that is known.
    fn unit(&self, name: &str) -> Option<Unit> {
        if name == ERRORS {
            return Some(Unit::Count);
        }
        let of_table = self.metrics.named(name).map(|metric| metric.unit);
        of_table.or_else(|| percentile(name).map(|_| Unit::Nanoseconds))
    }

    /// The expression behind a requirement's left side, with only metrics left as names.
    fn figure(&self, name: &str) -> Result<Expression, String> {
        let expression = match self.derived.get(name) {
            Some(text) => Expression::parse(text)?,
            None => Expression::Name(name.to_owned()),
        };
        self.fill(expression)
    }

    /// That every line of `[derive]` can be read, whether anything asks for it or not.
    ///
    /// # Errors
    /// The name of the first that can't be, and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&str, String)> {
        for (name, text) in self.derived {
            let read = match self.is_metric(name) {
                true => Err("is a metric already; choose another name".to_owned()),
                false => Expression::parse(text).and_then(|expression| {
                    let filled = self.fill(expression)?;
                    let unit = filled.unit(&|name| self.unit(name));
                    unit.map_err(|problem| format!("\"{text}\": {problem}"))
                }),
            };
            read.map_err(|problem| (name.as_str(), problem))?;
        }
        Ok(())
    }

    fn fill(&self, expression: Expression) -> Result<Expression, String> {
        match expression {
            Expression::Name(name) if self.is_metric(&name) => Ok(Expression::Name(name)),
            Expression::Name(name) => match self.number(&name) {
                Some(number) => Ok(Expression::Number(number, Unit::Number)),
                None => Err(self.unknown(&name)),
            },
            Expression::Pair(sign, left, right) => {
                let (left, right) = (self.fill(*left)?, self.fill(*right)?);
                Ok(Expression::Pair(sign, Box::new(left), Box::new(right)))
            }
            number => Ok(number),
        }
    }

    /// Why nothing is known under this name, and which name may have been meant.
    fn unknown(&self, name: &str) -> String {
        if self.derived.contains_key(name) {
            return format!("\"{name}\" is derived itself: write what it is made of");
        }
        let metrics = self.metrics.iter().map(|row| &*row.suite).chain([ERRORS]);
        let known = metrics.chain(self.derived.keys().map(String::as_str));
        let of_latency = format!("latency.{name}");
        let help = match (name.split_once(".p"), nearest(name, known)) {
            _ if self.is_metric(&of_latency) => format!("; did you mean \"{of_latency}\"?"),
            (Some(("latency" | "staleness", _)), _) => {
                "; percentiles lie between 0 and 100: latency.p95, latency.p99.9, latency.max"
                    .to_owned()
            }
            (_, Some(near)) => format!("; did you mean \"{near}\"?"),
            _ => {
                let metrics = self.metrics.iter().map(|row| &*row.suite);
                let listed = metrics_listed(name, metrics.chain([ERRORS]));
                format!("; what programs report is declared in [figures]; there are: {listed}")
            }
        };
        format!("\"{name}\" is neither a metric nor a number of the suite{help}")
    }

    /// Whether a trial can have a value of this name. What a service counts is only known once it
    /// runs; a counter that it does not have is unseen then.
    fn is_metric(&self, name: &str) -> bool {
        let counter = name.strip_prefix("service.").is_some_and(|counter| !counter.is_empty());
        let known = self.metrics.named(name).is_some_and(|metric| metric.suite == name);
        counter || known || name == ERRORS || percentile(name).is_some()
    }
}

impl Requirement {
    /// Reads a requirement: `figure` is a metric or a derived name, `written` a sign and a bound.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    pub(super) fn parse(figure: &str, written: &str, names: &Names<'_>) -> Result<Self, String> {
        let expression = names.figure(figure)?;
        let unit = expression.unit(&|name| names.unit(name))?;
        let found =
            SIGNS.iter().find_map(|(sign, one)| Some((written.trim().strip_prefix(sign)?, one)));
        let (bound, comparison) = found.ok_or_else(|| {
            let number = example("1", unit);
            format!("\"{written}\" starts with none of <, <=, >, >=, =; write e.g. \"< {number}\"")
        })?;
        if let Some(bound) = bound.strip_prefix('=') {
            return Err(format!("there is no == here: write \"= {}\"", bound.trim()));
        }
        let bound = Bound::read(bound.trim(), names)?;
        let mut all = Self {
            text: format!("{figure} {}", written.trim()),
            figure: expression,
            unit,
            comparison: *comparison,
            bound: bound.value.ok_or_else(|| format!("\"{written}\": no number comes of it"))?,
        };
        if let Some(factor) = &bound.factor {
            bound.check_with_factor(figure, unit)?;
            let (figure, factor) = (Box::new(all.figure), Box::new(factor.clone()));
            all.figure = Expression::Pair('/', figure, factor);
            all.unit = all.figure.unit(&|name| names.unit(name))?;
            return Ok(all);
        }
        if let Some(share) = all.is_share_of_operations(&bound) {
            all.figure = Expression::Name(share);
            all.unit = Some(Unit::Fraction);
        }
        let sign = &written.trim()[..written.trim().len() - bound.text.len()];
        bound.check(figure, sign.trim(), all.unit)?;
        Ok(all)
    }

    /// The name of the share of the operations asked for that this requires, which is written as a
    /// percentage. None at all is no share but a count.
    fn is_share_of_operations(&self, bound: &Bound<'_>) -> Option<String> {
        let Expression::Name(name) = &self.figure else { return None };
        let counts = OF_OPERATIONS.contains(&&name[..]);
        (counts && bound.unit == Some(Unit::Fraction) && self.bound > 0.0)
            .then(|| format!("{name}{OF_THOSE_ASKED}"))
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

/// The bound, right of the sign.
struct Bound<'a> {
    text: &'a str,
    /// The number in it.
    value: Option<f64>,
    /// The metrics that it is multiplied by.
    factor: Option<Expression>,
    /// The unit of all of it; `None` when it can't be known.
    unit: Option<Unit>,
}

impl<'a> Bound<'a> {
    fn read(text: &'a str, names: &Names<'_>) -> Result<Self, String> {
        let bound = Expression::parse(text)?;
        let is_number = |name: &str| names.number(name).is_some();
        let unknown = |name: &&&str| !is_number(name) && !names.is_metric(name);
        if let Some(name) = bound.names().iter().find(unknown) {
            return Err(format!(
                "\"{name}\" is neither a number of the suite nor a metric, so it can't be a bound"
            ));
        }
        let unit_of =
            |name: &str| if is_number(name) { Some(Unit::Number) } else { names.unit(name) };
        let unit = bound.unit(&unit_of).map_err(|problem| format!("\"{text}\": {problem}"))?;
        let (number, factor) = bound.split(&|name| !is_number(name)).ok_or_else(|| {
            format!("\"{text}\": a metric can only be a factor of a bound: 5s * concurrency.mean")
        })?;
        let value = match number {
            None => Some(1.0),
            Some(number) => number.value(&|name| names.number(name)),
        };
        Ok(Self { text, value, factor, unit })
    }

    /// The same as [`Bound::check`], of a bound with metrics in it: it is of the figure's kind, as
    /// far as that is known.
    fn check_with_factor(&self, figure: &str, wanted: Option<Unit>) -> Result<(), String> {
        let (Some(wanted), Some(unit)) = (wanted, self.unit) else { return Ok(()) };
        let fits = wanted == unit || (is_scalar(wanted) && is_scalar(unit));
        fits.then_some(()).ok_or_else(|| {
            let (kind, text, is) = (kind_of(wanted), self.text, kind_of(unit));
            format!("{figure} is {kind}, and \"{text}\" is {is}")
        })
    }

    /// Holds it against the figure's unit. Nothing is the same in every unit.
    fn check(&self, figure: &str, sign: &str, wanted: Option<Unit>) -> Result<(), String> {
        let (Some(wanted), value) = (wanted, self.value.unwrap_or(0.0)) else { return Ok(()) };
        if value > 1.0 && self.unit == Some(Unit::Fraction) && PARTS_OF_ALL.contains(&figure) {
            let text = self.text;
            return Err(format!("{figure} is a part of all, and \"{text}\" is more than 100%"));
        }
        let fits = match (wanted, self.unit) {
            (_, Some(Unit::Number | Unit::Fraction)) if value == 0.0 => true,
            (Unit::Fraction, Some(Unit::Number)) => value <= 1.0,
            (Unit::Count, Some(Unit::Number)) => true,
            (Unit::Number, Some(Unit::Fraction)) => true,
            (wanted, unit) => unit == Some(wanted),
        };
        if fits {
            return Ok(());
        }
        // A bare number keeps its digits in the example.
        let bare = self.text.parse::<f64>().is_ok();
        let example =
            format!("{sign} {}", example(if bare { self.text } else { "1" }, Some(wanted)));
        let (kind, text) = (kind_of(wanted), self.text);
        let problem = match self.unit {
            Some(Unit::Number) => format!("\"{text}\" has no unit"),
            Some(unit) => format!("\"{text}\" is {}", kind_of(unit)),
            None => format!("\"{text}\" is of another kind"),
        };
        let declared = match wanted {
            Unit::Number => ", or declare its unit in [figures]",
            _ => "",
        };
        Err(format!("{figure} is {kind}, and {problem}; write e.g. \"{example}\"{declared}"))
    }
}

/// A bound as this unit is written.
fn example(number: &str, unit: Option<Unit>) -> String {
    let unit = match unit {
        Some(Unit::Nanoseconds) => "ms",
        Some(Unit::PerSecond) => "/s",
        Some(Unit::Bytes) => "MiB",
        Some(Unit::BytesPerSecond) => "MiB/s",
        Some(Unit::Fraction) => "%",
        Some(Unit::Count | Unit::Number) | None => "",
    };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(figure: &str, written: &str) -> Result<Requirement, String> {
        let table = "[[clients]]\nname = 'c'\nconnections = 20".parse().unwrap();
        let derived = "latency.mean / clients.connections".to_owned();
        let derived = BTreeMap::from([("server_time".to_owned(), derived)]);
        let metrics = Metrics::default();
        let names = Names { derived: &derived, table: &table, metrics: &metrics };
        Requirement::parse(figure, written, &names)
    }

    #[test]
    fn bounds_may_use_the_numbers_of_the_point() {
        let bound = |text| parse("latency.p99", text).map(|requirement| requirement.bound);
        assert_eq!(bound("< 1ms"), Ok(1e6));
        assert_eq!(parse("rate_per_s", ">= 50k/s").unwrap().bound, 50_000.0);
        assert_eq!(bound("<= 5s * clients.connections"), Ok(100e9));
        assert_eq!(bound("<= 5s * clients.c.connections"), Ok(100e9));
        assert!(bound("1ms").unwrap_err().contains("starts with none"));
        assert!(
            bound("< clients.pipelines").unwrap_err().contains("neither a number of the suite")
        );
    }

    #[test]
    fn a_bound_may_have_metrics_as_factors() {
        let read = parse("latency.mean", "<= 5s * concurrency.mean").unwrap();
        assert_eq!((read.bound, read.unit), (5e9, Some(Unit::Nanoseconds)));
        assert_eq!(read.figure.names(), ["latency.mean", "concurrency.mean"]);
        // 20 under way, and 90 s for each of them: 4.5 s of the target's own time.
        let value = |name: &str| Some(if name == "latency.mean" { 90e9 } else { 20.0 });
        assert_eq!(read.figure.value(&value), Some(4.5e9));
        assert!(read.holds(4.5e9) && read.text == "latency.mean <= 5s * concurrency.mean");
        let tail = parse("latency.p99", "< 10 * latency.p50").unwrap();
        assert_eq!((tail.bound, tail.unit), (10.0, Some(Unit::Number)));
        assert_eq!(parse("latency.p99", "< latency.p50").unwrap().bound, 1.0);
        assert_eq!(parse("latency.mean", "< 2s * service.jobs").unwrap().bound, 2e9);
        for (written, said) in [
            (
                "< 5 * concurrency.mean",
                "latency.mean is a time, and \"5 * concurrency.mean\" is a \
                number without a unit",
            ),
            ("< 5s + concurrency.mean", "a time and a number without a unit can't be added"),
            ("< 5s + latency.p99", "a metric can only be a factor of a bound"),
            ("< 5s * concurrency.men", "neither a number of the suite nor a metric"),
        ] {
            let problem = parse("latency.mean", written).unwrap_err();
            assert!(problem.contains(said), "{written}: {problem}");
        }
    }

    #[test]
    fn a_bound_has_the_unit_of_its_figure() {
        let refused = |figure: &str, written: &str| parse(figure, written).unwrap_err();
        let (time, size) = ("latency.p99 is a time, and", "server.rss_bytes is a size, and");
        for (figure, written, said) in [
            ("latency.p99", "< 64MiB", format!("{time} \"64MiB\" is a size; write e.g. \"< 1ms\"")),
            ("latency.p99", "< 5%", format!("{time} \"5%\" is a share; write e.g. \"< 1ms\"")),
            ("latency.p99", "<50", format!("{time} \"50\" has no unit; write e.g. \"< 50ms\"")),
            ("server.rss_bytes", "< 1s", format!("{size} \"1s\" is a time; write e.g. \"< 1MiB\"")),
            ("rate_per_s", ">= 7", "\"7\" has no unit; write e.g. \">= 7/s\"".to_owned()),
            ("bytes_per_s", "> 5M/s", "\"5M/s\" is a rate; write e.g. \"> 1MiB/s\"".to_owned()),
            ("hit_ratio", ">= 95", "\"95\" has no unit; write e.g. \">= 95%\"".to_owned()),
            ("wrong", "< 1ms", "wrong is a count, and \"1ms\" is a time".to_owned()),
            ("misses", "< 1%", "misses is a count, and \"1%\" is a share".to_owned()),
            ("latency.p99", "< 1ms + 1MiB", "a time and a size can't be added".to_owned()),
            ("latency.p99", "< 1,234", "1_234 for thousands".to_owned()),
            ("wrong", "== 0", "there is no == here: write \"= 0\"".to_owned()),
            ("p99", "= 5", "did you mean \"latency.p99\"?".to_owned()),
            ("p99.9", "< 5ms", "did you mean \"latency.p99.9\"?".to_owned()),
            ("mean", "< 5ms", "did you mean \"latency.mean\"?".to_owned()),
            ("hit_ratio", "> 950%", "\"950%\" is more than 100%".to_owned()),
            ("missing", "< 101%", "\"101%\" is more than 100%".to_owned()),
        ] {
            let problem = refused(figure, written);
            assert!(problem.contains(&said), "{figure} {written}: {problem}");
        }
        for (figure, written) in [
            ("latency.p99", "< 1 ms"),
            ("latency.p99", "> 0"),
            ("hit_ratio", ">= 0.95"),
            ("bytes_per_s", "> 64MiB/s"),
            ("service.bytes", "< 64MiB"),
            ("service.bytes", "< 1000"),
        ] {
            parse(figure, written).unwrap();
        }
    }

    #[test]
    fn wrong_and_missing_answers_are_required_as_counts_or_as_shares() {
        let read = |figure, written| parse(figure, written).unwrap();
        let share = read("errors", "< 1%");
        assert_eq!((share.unit, share.bound), (Some(Unit::Fraction), 0.01));
        assert_eq!(share.figure.names(), ["errors of those asked"]);
        assert_eq!(read("missing", "< 0.1%").figure.names(), ["missing of those asked"]);
        assert_eq!(read("refused", "< 1%").figure.names(), ["refused of those asked"]);
        assert_eq!(read("missing", "= 0").figure.names(), ["missing"]);
        assert_eq!(read("wrong", "= 0%").figure.names(), ["wrong"], "none at all is a count");
    }

    #[test]
    fn a_derived_figure_is_made_of_metrics_and_the_points_numbers() {
        let requirement = parse("server_time", "<= 5s").unwrap();
        assert_eq!(requirement.figure.names(), ["latency.mean"]);
        assert_eq!(requirement.figure.value(&|_| Some(100e9)), Some(5e9));
        assert_eq!(requirement.unit, Some(Unit::Nanoseconds), "it keeps its unit");
        let wrong = parse("server_time", "<= 5").unwrap_err();
        assert_eq!(wrong, "server_time is a time, and \"5\" has no unit; write e.g. \"<= 5ms\"");
        let unknown = parse("latency.p100", "< 1ms").unwrap_err();
        assert!(unknown.contains("between 0 and 100"), "{unknown}");
        let unknown = parse("latency.maen", "< 1ms").unwrap_err();
        assert!(unknown.contains("did you mean \"latency.mean\"?"), "{unknown}");
    }

    #[test]
    fn every_derived_line_is_read_though_nothing_asks_for_it() {
        let wrong = |name: &str, text: &str| {
            let derived = BTreeMap::from([(name.to_owned(), text.to_owned())]);
            let (table, metrics) = (toml::Table::new(), Metrics::default());
            let names = Names { derived: &derived, table: &table, metrics: &metrics };
            names.check().map_err(|(at, problem)| format!("{at}: {problem}")).unwrap_err()
        };
        assert!(wrong("a", "latency.mean /").starts_with("a: \"latency.mean /\": a number"));
        assert!(wrong("a", "latency.maen / 2").contains("did you mean \"latency.mean\"?"));
        assert!(wrong("a", "a + 1").contains("derived itself"));
        assert!(wrong("latency.p99", "1").contains("is a metric already"));
        assert!(wrong("latency.p98", "1").contains("is a metric already"));
        assert!(wrong("a", "latency.mean + wrong").ends_with("a time and a count can't be added"));
    }

    #[test]
    fn a_bound_holds_or_breaks() {
        let requirement = parse("wrong", "= 0").unwrap();
        assert!(requirement.holds(0.0));
        assert!(!requirement.holds(1.0));
    }
}
