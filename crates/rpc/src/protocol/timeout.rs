//! `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

/// The longest that is kept: the most hours that can be written are 11,408 years, which some clocks
/// can't add up.
#[cfg(feature = "grpc")]
const MOST: Duration = Duration::from_secs(366 * 24 * 3_600 * 100);

/// The digits that may be written.
const DIGITS: usize = 8;

/// The time that is written; `None` where it is none.
#[cfg(feature = "grpc")]
pub(crate) fn parse(written: &[u8]) -> Option<Duration> {
    let (unit, digits) = written.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    let time = match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    };
    Some(time.min(MOST))
}

/// The time as it is written, rounded up to the first unit that has room for it.
pub(crate) fn format(time: Duration) -> String {
    const UNITS: [(u128, char); 6] = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
        (3_600_000_000_000, 'H'),
    ];
    let most = 10_u128.pow(DIGITS as u32) - 1;
    let ns = time.as_nanos();
    let written = |(unit, letter): (u128, char)| {
        let number = ns.div_ceil(unit);
        (number <= most).then(|| format!("{number}{letter}"))
    };
    UNITS.into_iter().find_map(written).unwrap_or_else(|| format!("{most}H"))
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn eight_digits_and_a_unit_are_a_time_and_nothing_else_is() {
        assert_eq!(parse(b"201m"), Some(Duration::from_millis(201)));
        assert_eq!(parse(b"0n"), Some(Duration::ZERO));
        assert_eq!(parse(b"99999999H"), Some(MOST));
        for wrong in ["", "m", "100", "123456789m", "-1S", "1 S", "1s", "1.5S", "+1S"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_time_is_written_with_five_digits_of_it_and_never_shorter(ns in 0..u64::MAX / 8) {
            let time = Duration::from_nanos(ns);
            let read = parse(format(time).as_bytes()).expect("a time");
            prop_assert!(read >= time);
            prop_assert!(read.as_nanos() - time.as_nanos() <= time.as_nanos() / 99_999);
        }
    }
}
