//! Arithmetic in suites: `5s * clients.connections`, `latency.mean / clients.connections`.
//!
//! Numbers may carry units and are then in base units: nanoseconds, bytes, per second, fractions.
//! Names are metrics or numbers of the point. Nothing else: `+ - * /` and parentheses. The unit of
//! the result follows from those of its parts; a time and a size can't be added.

use base::units::{ByteCount, Rate, Share, Span};
use judge::Unit;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number in base units, and the unit that it was written in; without one
    /// [`Unit::Number`].
    Number(f64, Unit),
    /// A metric, or a number of the point, by its dotted name.
    Name(String),
    /// Two expressions joined by one of `+ - * /`.
    Pair(char, Box<Expression>, Box<Expression>),
}

/// An expression may be at most this long, so that no nesting of it can exhaust the stack.
const MAX_BYTES: usize = 500;

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("an expression of more than {MAX_BYTES} bytes"));
        }
        let mut reader = Reader { text, at: 0 };
        let expression = reader.sum()?;
        match reader.peek() {
            None => Ok(expression),
            Some(',') => Err(format!(
                "\"{text}\" has a comma: write 1234 or 1_234 for thousands, 1.5 for a fraction"
            )),
            Some(other) => Err(format!("\"{text}\": what is '{other}' doing there?")),
        }
    }

    /// Every name in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(..) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Pair(_, left, right) => [left.names(), right.names()].concat(),
        }
    }

    /// Its value, where `value` knows the names; `None` when one is not known, or the result is no
    /// number.
    pub fn value(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let result = match self {
            Self::Number(number, _) => *number,
            Self::Name(name) => value(name)?,
            Self::Pair(sign, left, right) => {
                let (left, right) = (left.value(value)?, right.value(value)?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
        };
        result.is_finite().then_some(result)
    }

    /// Itself as a product of what has none of these names, and what is made of them alone, each
    /// where there is any: `5s * concurrency.mean` is `5s` and `concurrency.mean`. `None` where a
    /// sum keeps them together.
    pub fn split(&self, is_one: &dyn Fn(&str) -> bool) -> Option<(Option<Self>, Option<Self>)> {
        match self {
            Self::Name(name) if is_one(name) => Some((None, Some(self.clone()))),
            Self::Pair(sign @ ('*' | '/'), left, right) => {
                let (left, right) = (left.split(is_one)?, right.split(is_one)?);
                Some((joined(*sign, left.0, right.0), joined(*sign, left.1, right.1)))
            }
            _ => {
                let is_plain = !self.names().into_iter().any(is_one);
                is_plain.then(|| (Some(self.clone()), None))
            }
        }
    }

    /// Its unit, where `of` knows those of the names; `None` when that can't be known, as of what a
    /// service counts itself.
    ///
    /// # Errors
    /// Which unlike quantities are added or subtracted.
    pub fn unit(&self, of: &dyn Fn(&str) -> Option<Unit>) -> Result<Option<Unit>, String> {
        let (sign, left, right) = match self {
            Self::Number(_, unit) => return Ok(Some(*unit)),
            Self::Name(name) => return Ok(of(name)),
            Self::Pair(sign, left, right) => (*sign, left.unit(of)?, right.unit(of)?),
        };
        let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
        match sign {
            '*' => Ok(product(left, right)),
            '/' => Ok(quotient(left, right)),
            _ if left == right => Ok(Some(left)),
            _ if is_scalar(left) && is_scalar(right) => Ok(Some(Unit::Number)),
            _ => Err(format!("{} and {} can't be added", kind_of(left), kind_of(right))),
        }
    }
}

/// What is left of a product or a quotient of two parts of which each may be missing.
fn joined(sign: char, left: Option<Expression>, right: Option<Expression>) -> Option<Expression> {
    let left = match (left, sign) {
        (left, '*') if left.is_none() || right.is_none() => return left.or(right),
        (left, _) if right.is_none() => return left,
        (left, _) => left.unwrap_or(Expression::Number(1.0, Unit::Number)),
    };
    Some(Expression::Pair(sign, Box::new(left), Box::new(right?)))
}

/// The kind of quantity that has this unit, with its article.
pub(super) fn kind_of(unit: Unit) -> &'static str {
    match unit {
        Unit::PerSecond => "a rate",
        Unit::Nanoseconds => "a time",
        Unit::Bytes => "a size",
        Unit::BytesPerSecond => "a rate of bytes",
        Unit::Count => "a count",
        Unit::Fraction => "a share",
        Unit::Number => "a number without a unit",
    }
}

/// Whether a quantity only scales others.
pub(super) fn is_scalar(unit: Unit) -> bool {
    matches!(unit, Unit::Number | Unit::Count | Unit::Fraction)
}

fn product(left: Unit, right: Unit) -> Option<Unit> {
    match (left, right) {
        (Unit::Bytes, Unit::PerSecond) | (Unit::PerSecond, Unit::Bytes) => {
            Some(Unit::BytesPerSecond)
        }
        _ if is_scalar(left) && is_scalar(right) => Some(Unit::Number),
        _ if is_scalar(right) => Some(left),
        _ if is_scalar(left) => Some(right),
        _ => None,
    }
}

fn quotient(left: Unit, right: Unit) -> Option<Unit> {
    match (left, right) {
        (Unit::BytesPerSecond, Unit::PerSecond) => Some(Unit::Bytes),
        _ if left == right || (is_scalar(left) && is_scalar(right)) => Some(Unit::Number),
        _ if is_scalar(right) => Some(left),
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let spaces = self.rest().len() - self.rest().trim_start().len();
        self.at += spaces;
        self.rest().chars().next()
    }

    fn take_if(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.peek().filter(|sign| signs.contains(sign))?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(sign) = self.take_if(&['+', '-']) {
            left = Expression::Pair(sign, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.factor()?;
        while let Some(sign) = self.take_if(&['*', '/']) {
            left = Expression::Pair(sign, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        if self.take_if(&['(']).is_some() {
            let inner = self.sum()?;
            let closed = self.take_if(&[')']);
            return closed
                .map(|_| inner)
                .ok_or_else(|| format!("\"{}\": a ) is missing", self.text));
        }
        match self.peek() {
            Some(first) if first.is_ascii_digit() => self.number(),
            Some(first) if first.is_ascii_alphabetic() => {
                let part = |c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c));
                let length = self.rest().find(part).unwrap_or(self.rest().len());
                let name = self.rest()[..length].to_owned();
                self.at += length;
                Ok(Expression::Name(name))
            }
            _ => Err(format!("\"{}\": a number or a name is missing", self.text)),
        }
    }

    fn number(&mut self) -> Result<Expression, String> {
        let digit = |c: char| !(c.is_ascii_digit() || c == '.' || c == '_');
        let digits = self.rest().find(digit).unwrap_or(self.rest().len());
        let (number, after) = self.rest().split_at(digits);
        // No name or number may follow a number, so what follows a blank is its unit, too.
        let unit = after.trim_start();
        let letter = |c: char| !(c.is_alphabetic() || c == '%');
        let mut length = unit.find(letter).unwrap_or(unit.len());
        // `50k/s` is one number: a slash and a lone `s` belong to its unit.
        let rate = unit[length..].strip_prefix("/s");
        if rate.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')) {
            length += 2;
        }
        let written = format!("{number}{}", &unit[..length]);
        let blanks = if length > 0 { after.len() - unit.len() } else { 0 };
        self.at += digits + blanks + length;
        let (value, unit) = quantity(&written)?;
        Ok(Expression::Number(value, unit))
    }
}

/// A number in base units, with the unit that it was written in.
fn quantity(text: &str) -> Result<(f64, Unit), String> {
    let plain = || text.replace('_', "").parse::<f64>().ok().map(|value| (value, Unit::Number));
    let time = || text.parse::<Span>().ok().map(|span| (span.ns as f64, Unit::Nanoseconds));
    let rate = || text.parse::<Rate>().ok().map(|rate| (rate.per_second, Unit::PerSecond));
    let share = || text.parse::<Share>().ok().map(|share| (share.fraction, Unit::Fraction));
    let size = |text: &str| text.parse::<ByteCount>().ok().map(|count| count.bytes as f64);
    let bytes = || size(text).map(|value| (value, Unit::Bytes));
    let bytes_per_s = || {
        let size_of = text.strip_suffix("/s").filter(|rest| rest.ends_with('B'));
        size_of.and_then(size).map(|value| (value, Unit::BytesPerSecond))
    };
    let value = plain().or_else(time).or_else(rate).or_else(share).or_else(bytes);
    value.or_else(bytes_per_s).ok_or_else(|| {
        format!("\"{text}\" is not a quantity such as 0, 1ms, 50k/s, 2%, 64MiB or 64MiB/s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<Option<f64>, String> {
        let known = |name: &str| match name {
            "clients.connections" => Some(20.0),
            "latency.mean" => Some(60e9),
            _ => None,
        };
        Expression::parse(text).map(|expression| expression.value(&known))
    }

    #[test]
    fn quantities_names_and_signs_make_a_value() {
        assert_eq!(value("5s * clients.connections"), Ok(Some(100e9)));
        assert_eq!(value("latency.mean / clients.connections"), Ok(Some(3e9)));
        assert_eq!(value("(1 + 2) * 3 - 4 / 2"), Ok(Some(7.0)));
        assert_eq!(value("50k/s"), Ok(Some(50_000.0)));
        assert_eq!(value("64MiB + 2%"), Ok(Some(64.0 * 1_048_576.0 + 0.02)));
        assert_eq!(value("1 / 0"), Ok(None), "no number comes of it");
        assert_eq!(value("unknown"), Ok(None));
    }

    #[test]
    fn a_blank_may_stand_before_a_unit() {
        assert_eq!(value("1 ms"), Ok(Some(1e6)));
        assert_eq!(value("50 k/s / 2"), Ok(Some(25_000.0)));
        assert_eq!(value("2 % * 100"), Ok(Some(2.0)));
        assert_eq!(value("64 MiB/s"), Ok(Some(64.0 * 1_048_576.0)));
        assert_eq!(value("500 /s"), Ok(Some(500.0)));
        assert_eq!(value("6 / 3"), Ok(Some(2.0)));
    }

    #[test]
    fn the_unit_follows_from_the_parts() {
        let of = |name: &str| match name {
            "latency.mean" => Some(Unit::Nanoseconds),
            "bytes_per_s" => Some(Unit::BytesPerSecond),
            "clients.connections" => Some(Unit::Number),
            _ => None,
        };
        let unit = |text: &str| Expression::parse(text).unwrap().unit(&of);
        assert_eq!(unit("latency.mean / clients.connections"), Ok(Some(Unit::Nanoseconds)));
        assert_eq!(unit("5s * clients.connections"), Ok(Some(Unit::Nanoseconds)));
        assert_eq!(unit("latency.mean / 1ms"), Ok(Some(Unit::Number)));
        assert_eq!(unit("bytes_per_s / 50k/s"), Ok(Some(Unit::Bytes)));
        assert_eq!(unit("latency.mean * bytes_per_s"), Ok(None));
        assert_eq!(unit("service.requests / 2"), Ok(None));
        assert_eq!(unit("50% + 1"), Ok(Some(Unit::Number)));
        assert_eq!(unit("latency.mean + 1MiB"), Err("a time and a size can't be added".into()));
    }

    #[test]
    fn a_product_is_divided_into_numbers_and_names() {
        let split = |text: &str| {
            let parts = Expression::parse(text).unwrap().split(&|name| name == "x");
            parts.map(|(number, names)| {
                let value = |part: Option<Expression>| part.map(|part| part.value(&|_| Some(8.0)));
                (value(number).flatten(), value(names).flatten())
            })
        };
        assert_eq!(split("5 * x"), Some((Some(5.0), Some(8.0))));
        assert_eq!(split("x"), Some((None, Some(8.0))));
        assert_eq!(split("(1 + 2) * x * x / 4"), Some((Some(0.75), Some(64.0))));
        assert_eq!(split("6 / x / 2"), Some((Some(3.0), Some(0.125))));
        assert_eq!(split("6 / (2 * y)"), Some((Some(0.375), None)));
        assert_eq!(split("1 / (x / 2)"), Some((Some(2.0), Some(0.125))));
        assert_eq!(split("5 + x"), None);
    }

    #[test]
    fn what_is_no_expression_is_said() {
        assert!(value("5 parsecs").unwrap_err().contains("is not a quantity"));
        assert!(value("5 5").unwrap_err().contains("doing there"));
        assert!(value("1,234").unwrap_err().contains("1_234 for thousands"));
        assert!(value("5parsecs").unwrap_err().contains("is not a quantity"));
        assert!(value("(1").unwrap_err().contains(") is missing"));
        assert!(value("").unwrap_err().contains("is missing"));
        assert!(value(&"(".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[ -~µ]{0,60}") {
            let _ = value(&text);
        }
    }
}
