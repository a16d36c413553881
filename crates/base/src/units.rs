//! Quantities as people write them in suites and on command lines: `256MiB`, `500ms`, `2%`.
//!
//! Every quantity keeps one unit inside, named by its field; a number without a unit is an
//! error, because that is how a second is taken for a millisecond.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, de::Error as _};

/// A quantity that can't be read: what was written and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{written}\" is not {expected}")]
pub struct UnitError {
    written: String,
    expected: &'static str,
}

/// A number with its unit's letters, e.g. `1.5` and `MiB`; underscores group digits.
fn split(written: &str) -> Option<(f64, &str)> {
    let text = written.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, text[end..].trim()))
}

/// Reads `written` by a table of units; the result is in the table's base unit.
fn read(written: &str, table: &[(&str, f64)], expected: &'static str) -> Result<f64, UnitError> {
    let wrong = || UnitError { written: written.to_owned(), expected };
    let (number, unit) = split(written).ok_or_else(wrong)?;
    let (_, factor) = table.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    Some(number * factor).filter(|product| product.is_finite()).ok_or_else(wrong)
}

/// The longest time allowed, so that sums of times stay numbers of nanoseconds: 10,000 h.
const LONGEST_NS: u64 = 36_000_000_000_000_000;

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Nanoseconds.
    pub ns: u64,
}

impl Span {
    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ns: ms * 1_000_000 }
    }

    /// The span as the standard library's type.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.ns)
    }

    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        self.ns as f64 / 1e9
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        const UNITS: &[(&str, f64)] = &[
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("min", 60e9),
            ("h", 3600e9),
        ];
        let ns = read(written, UNITS, "a time such as \"500ms\", \"5s\" or \"8min\"")?;
        let ns = ns.round() as u64;
        if ns > LONGEST_NS {
            let expected = "a time of at most 10,000 h";
            return Err(UnitError { written: written.to_owned(), expected });
        }
        Ok(Self { ns })
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, factor) = match self.ns {
            0..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("µs", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            1_000_000_000..120_000_000_000 => ("s", 1e9),
            120_000_000_000..7_200_000_000_000 => ("min", 60e9),
            _ => ("h", 3600e9),
        };
        let number = (self.ns as f64 / factor * 100.0).round() / 100.0;
        write!(f, "{number} {unit}")
    }
}

/// A number of bytes. A bare integer is accepted: bytes need no other unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount {
    /// Bytes.
    pub bytes: u64,
}

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        const UNITS: &[(&str, f64)] = &[
            ("", 1.0),
            ("B", 1.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
        ];
        let bytes = read(written, UNITS, "a size such as \"480\", \"256MiB\" or \"8MB\"")?;
        Ok(Self { bytes: bytes.round() as u64 })
    }
}

impl std::fmt::Display for ByteCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: &[(u64, &str)] =
            &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (size, unit) in UNITS {
            if self.bytes >= *size {
                let number = (self.bytes as f64 / *size as f64 * 10.0).round() / 10.0;
                return write!(f, "{number} {unit}");
            }
        }
        write!(f, "{} B", self.bytes)
    }
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share {
    /// The part, where 1.0 is the whole.
    pub fraction: f64,
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        let fraction = read(written, &[("%", 0.01)], "a percentage such as \"2%\"")?;
        Ok(Self { fraction })
    }
}

/// How often something happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate {
    /// Times per second.
    pub per_second: f64,
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(written: &str) -> Result<Self, UnitError> {
        const UNITS: &[(&str, f64)] = &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)];
        let per_second = read(written, UNITS, "a rate such as \"500/s\", \"50k/s\" or \"1.5M/s\"")?;
        Ok(Self { per_second })
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, factor) = match self.per_second {
            rate if rate >= 1e6 => ("M/s", 1e6),
            rate if rate >= 1e3 => ("k/s", 1e3),
            _ => ("/s", 1.0),
        };
        let number = (self.per_second / factor * 100.0).round() / 100.0;
        write!(f, "{number}{unit}")
    }
}

/// Reads a quantity from a TOML string, or from an integer where the type allows a bare number.
fn from_toml<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnitError>,
{
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        other => other.to_string(),
    };
    text.parse().map_err(D::Error::custom)
}

macro_rules! read_from_toml {
    ($($quantity:ty),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_toml(deserializer)
            }
        }
    )*};
}
read_from_toml!(Span, ByteCount, Share, Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!("500ms".parse(), Ok(Span::from_ms(500)));
        assert_eq!("1.5 s".parse(), Ok(Span::from_ms(1500)));
        assert_eq!("256MiB".parse(), Ok(ByteCount { bytes: 256 << 20 }));
        assert_eq!("21_000".parse(), Ok(ByteCount { bytes: 21_000 }));
        assert_eq!("2%".parse(), Ok(Share { fraction: 0.02 }));
    }

    #[test]
    fn a_time_without_a_unit_is_refused_with_an_example() {
        let error = "5".parse::<Span>().unwrap_err();
        assert_eq!(error.to_string(), "\"5\" is not a time such as \"500ms\", \"5s\" or \"8min\"");
        assert!("-5s".parse::<Span>().is_err());
        assert!("5MiB".parse::<Span>().is_err());
        let long = "10_001h".parse::<Span>().unwrap_err().to_string();
        assert_eq!(long, "\"10_001h\" is not a time of at most 10,000 h");
        assert!(format!("{}M/s", "9".repeat(308)).parse::<Rate>().is_err());
    }
}
