//! Arithmetic in suites: `5s * clients.connections`, `latency.mean / clients.connections`.
//!
//! Numbers may carry units and are then in base units: nanoseconds, bytes, per second, fractions.
//! Names are metrics or numbers of the point. Nothing else: `+ - * /` and parentheses.

use base::units::{ByteCount, Rate, Share, Span};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number in base units.
    Number(f64),
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
            Some(other) => Err(format!("\"{text}\": what is '{other}' doing there?")),
        }
    }

    /// Every name in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Pair(_, left, right) => [left.names(), right.names()].concat(),
        }
    }

    /// Its value, where `value` knows the names; `None` when one is not known, or the result is no
    /// number.
    pub fn value(&self, value: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let result = match self {
            Self::Number(number) => *number,
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
        let after = &self.rest()[digits..];
        let letter = |c: char| !(c.is_alphabetic() || c == '%');
        let mut length = digits + after.find(letter).unwrap_or(after.len());
        // `50k/s` is one number: a slash and a lone `s` belong to its unit.
        let rate = self.rest()[length..].strip_prefix("/s");
        if rate.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')) {
            length += 2;
        }
        let written = self.rest()[..length].to_owned();
        self.at += length;
        quantity(&written).map(Expression::Number)
    }
}

/// A number, with or without a unit, in base units.
fn quantity(text: &str) -> Result<f64, String> {
    let plain = text.replace('_', "").parse::<f64>().ok();
    let time = || text.parse::<Span>().ok().map(|span| span.ns as f64);
    let rate = || text.parse::<Rate>().ok().map(|rate| rate.per_second);
    let share = || text.parse::<Share>().ok().map(|share| share.fraction);
    let bytes = || text.parse::<ByteCount>().ok().map(|count| count.bytes as f64);
    let value = plain.or_else(time).or_else(rate).or_else(share).or_else(bytes);
    value.ok_or_else(|| format!("\"{text}\" is not a quantity such as 0, 1ms, 50k/s, 2% or 64MiB"))
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
    fn what_is_no_expression_is_said() {
        assert!(value("5 parsecs").unwrap_err().contains("doing there"));
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
