//! Requirements: what must hold for the first target, such as `"latency.p99" = "< 1ms"`.

use std::collections::BTreeMap;

use judge::Metrics;

use super::error::nearest;
use super::expression::Expression;
use super::fill::value_at;

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
    /// What is compared: a metric, or what is derived from metrics and the point's numbers, which
    /// are filled in already.
    pub figure: Expression,
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
                false => Expression::parse(text).and_then(|expression| self.fill(expression)),
            };
            read.map_err(|problem| (name.as_str(), problem))?;
        }
        Ok(())
    }

    fn fill(&self, expression: Expression) -> Result<Expression, String> {
        match expression {
            Expression::Name(name) if self.is_metric(&name) => Ok(Expression::Name(name)),
            Expression::Name(name) => match self.number(&name) {
                Some(number) => Ok(Expression::Number(number)),
                None if self.derived.contains_key(&name) => {
                    Err(format!("\"{name}\" is derived itself: write what it is made of"))
                }
                None => {
                    let metrics = self.metrics.iter().map(|row| &*row.suite);
                    let known = metrics.chain(self.derived.keys().map(String::as_str));
                    let near = nearest(&name, known);
                    let near = near.map(|near| format!("; did you mean \"{near}\"?"));
                    let near = near.unwrap_or_else(|| {
                        "; what programs report under a name of its own is declared in [figures]"
                            .to_owned()
                    });
                    Err(format!("\"{name}\" is neither a metric nor a number of the suite{near}"))
                }
            },
            Expression::Pair(sign, left, right) => {
                let (left, right) = (self.fill(*left)?, self.fill(*right)?);
                Ok(Expression::Pair(sign, Box::new(left), Box::new(right)))
            }
            number => Ok(number),
        }
    }

    /// Whether a trial can have a value of this name. What a service counts is only known once it
    /// runs; a counter that it does not have is unseen then.
    fn is_metric(&self, name: &str) -> bool {
        let counter = name.strip_prefix("service.").is_some_and(|counter| !counter.is_empty());
        counter || self.metrics.named(name).is_some_and(|metric| metric.suite == name)
    }
}

impl Requirement {
    /// Reads a requirement: `figure` is a metric or a derived name, `written` a sign and a bound.
    ///
    /// # Errors
    /// What is wrong and what would be right.
    pub(super) fn parse(figure: &str, written: &str, names: &Names<'_>) -> Result<Self, String> {
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
        let bound = Expression::parse(bound.trim())?;
        let unknown = |name: &&&str| names.number(name).is_none();
        if let Some(name) = bound.names().iter().find(unknown) {
            return Err(format!("\"{name}\" is no number of the suite, so it can't be a bound"));
        }
        let value = bound.value(&|name| names.number(name));
        Ok(Self {
            text: format!("{figure} {}", written.trim()),
            figure: names.figure(figure)?,
            comparison: *comparison,
            bound: value.ok_or_else(|| format!("\"{written}\": no number comes of it"))?,
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
        assert_eq!(bound(">= 50k/s"), Ok(50_000.0));
        assert_eq!(bound("<= 5s * clients.connections"), Ok(100e9));
        assert_eq!(bound("<= 5s * clients.c.connections"), Ok(100e9));
        assert!(bound("1ms").unwrap_err().contains("starts with none"));
        assert!(bound("< clients.pipelines").unwrap_err().contains("no number of the suite"));
    }

    #[test]
    fn a_derived_figure_is_made_of_metrics_and_the_points_numbers() {
        let requirement = parse("server_time", "<= 5s").unwrap();
        assert_eq!(requirement.figure.names(), ["latency.mean"]);
        assert_eq!(requirement.figure.value(&|_| Some(100e9)), Some(5e9));
        let unknown = parse("latency.p98", "< 1ms").unwrap_err();
        assert!(unknown.contains("did you mean \"latency.p9"), "{unknown}");
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
    }

    #[test]
    fn a_bound_holds_or_breaks() {
        let requirement = parse("wrong", "= 0").unwrap();
        assert!(requirement.holds(0.0));
        assert!(!requirement.holds(1.0));
    }
}
