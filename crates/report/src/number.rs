//! Numbers as people read them: two or three digits that matter, and a unit.
//!
//! Units change at a tenth of the next one (0.12 ms, 0.66M/s), so that the figures of two
//! targets that are compared more often share a unit.

use judge::Unit;

/// A rate: `6.91M/s`, `0.66M/s`, `12.4k/s`, `512/s`.
pub fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 1e11 => format!("{}G/s", three_digits(r / 1e9)),
        r if r >= 99_950.0 => format!("{}M/s", three_digits(r / 1e6)),
        r if r >= 999.5 => format!("{}k/s", three_digits(r / 1e3)),
        r => format!("{}/s", three_digits(r)),
    }
}

/// A rate as a suite writes it, changing units at the whole one: `100k/s`, `81.2k/s`. For rates
/// that are compared in one sentence.
pub fn plain_rate(per_s: f64) -> String {
    match per_s {
        r if r >= 999_500.0 => format!("{}M/s", three_digits(r / 1e6)),
        r if r >= 999.5 => format!("{}k/s", three_digits(r / 1e3)),
        r => format!("{}/s", three_digits(r)),
    }
}

/// A number of unknown unit, to four digits that matter: `0.001234`, `1.234`, `12,340`.
pub fn plain(value: f64) -> String {
    let size = value.abs();
    if (999.95..1e15).contains(&size) {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", thousands(size.round() as u64));
    }
    if size != 0.0 && !(1e-6..1e15).contains(&size) {
        return format!("{value:.3e}");
    }
    let before = if size < 1.0 { 0 } else { size.log10().floor() as usize + 1 };
    let after = if size == 0.0 || size >= 1.0 {
        4_usize.saturating_sub(before)
    } else {
        (3.0 - size.log10().floor()) as usize
    };
    let text = format!("{value:.after$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A duration given in ns: `850 ns`, `9.1 µs`, `33 µs`, `0.12 ms`, `12.3 ms`, `1.23 s`.
pub fn duration(ns: f64) -> String {
    match ns {
        t if t < 999.5 => format!("{t:.0} ns"),
        t if t < 9_950.0 => format!("{:.1} µs", t / 1e3),
        t if t < 99_500.0 => format!("{:.0} µs", t / 1e3),
        t if t < 999.5e6 => format!("{} ms", three_digits(t / 1e6)),
        t => format!("{} s", three_digits(t / 1e9)),
    }
}

/// A cost in ns, as a plain number while that is readable: `8.3 ns`, `145 ns`, `1,502 ns`.
pub fn nanoseconds(ns: f64) -> String {
    match ns {
        t if t < 9.95 => format!("{t:.1} ns"),
        t if t < 99_999.5 => format!("{} ns", thousands(t.round() as u64)),
        t => duration(t),
    }
}

/// A number of things: `1,502`, `1.6 M`, `172 M`, `3.1 G`.
pub fn count(things: u64) -> String {
    let scaled = |unit: f64| {
        let value = things as f64 / unit;
        if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
    };
    match things {
        n if n < 1_000_000 => thousands(n),
        n if n < 1_000_000_000 => format!("{} M", scaled(1e6)),
        _ => format!("{} G", scaled(1e9)),
    }
}

/// All digits, in groups of three: `1,502`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Memory: `512 B`, `12.4 KiB`, `256 MiB`, `1.50 GiB`.
pub fn bytes(bytes: f64) -> String {
    let mut scaled = bytes;
    let mut units = ["KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = "B";
    while scaled >= 1023.5 {
        let Some(next) = units.next() else { break };
        (scaled, unit) = (scaled / 1024.0, next);
    }
    match unit {
        "B" => format!("{scaled:.0} B"),
        _ => format!("{} {unit}", three_digits(scaled)),
    }
}

/// Bytes per second, in powers of ten as links and buses are rated: `1.70 GB/s`.
pub(crate) fn bytes_per_s(per_s: f64) -> String {
    match per_s {
        r if r >= 999.5e6 => format!("{} GB/s", three_digits(r / 1e9)),
        r if r >= 999.5e3 => format!("{} MB/s", three_digits(r / 1e6)),
        r if r >= 999.5 => format!("{} kB/s", three_digits(r / 1e3)),
        r => format!("{} B/s", three_digits(r)),
    }
}

/// A fraction as a percentage of two digits: 0.019 is `1.9 %`, 0.62 is `62 %`.
pub fn percent(fraction: f64) -> String {
    match (fraction * 100.0).abs() {
        p if p < 0.995 => format!("{:.2} %", fraction * 100.0),
        p if p < 9.95 => format!("{:.1} %", fraction * 100.0),
        _ => format!("{:.0} %", fraction * 100.0),
    }
}

/// A fraction as a whole percentage: 0.02 is `2 %`, 0.625 is `62 %`, 0.005 is `0.5 %`.
pub fn whole_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 10.0 && (percent - percent.round()).abs() > 0.05 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A ratio without its sign: `10.4`, `2.31`, `1.031`, `0.104`. Near 1 three decimals are shown,
/// as differences of a few percent are what is decided there.
pub fn ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r if r >= 1.9995 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// A metric's value with its unit.
pub fn value_of(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond => rate(value),
        Unit::Nanoseconds => duration(value),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => bytes_per_s(value),
        Unit::Count => count(value.max(0.0).round() as u64),
        Unit::Fraction => percent(value),
        Unit::Number => plain(value),
    }
}

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_in_the_reports() {
        assert_eq!(
            [rate(6.912e6), rate(0.66e6), rate(12_400.0)],
            ["6.91M/s", "0.66M/s", "12.4k/s"]
        );
        assert_eq!([duration(33_100.0), duration(120_000.0)], ["33 µs", "0.12 ms"]);
        assert_eq!([duration(850.0), duration(9_100.0)], ["850 ns", "9.1 µs"]);
        assert_eq!([duration(5e9), duration(12.34e6)], ["5.00 s", "12.3 ms"]);
        assert_eq!([nanoseconds(145.2), nanoseconds(1502.0)], ["145 ns", "1,502 ns"]);
        assert_eq!([count(172_000_000), count(1_640_000), count(0)], ["172 M", "1.6 M", "0"]);
        assert_eq!([percent(0.019), percent(0.62), percent(0.0004)], ["1.9 %", "62 %", "0.04 %"]);
        assert_eq!([ratio(10.44), ratio(1.0312), ratio(0.1039)], ["10.4", "1.031", "0.104"]);
        assert_eq!([bytes(512.0), bytes(268_435_456.0)], ["512 B", "256 MiB"]);
        assert_eq!([plain_rate(1e5), plain_rate(81_240.0)], ["100k/s", "81.2k/s"]);
        assert_eq!(
            [plain(0.0), plain(3.0), plain(1.23456), plain(0.001_234_5)],
            ["0", "3", "1.235", "0.001234"]
        );
        assert_eq!([plain(12_340.0), plain(-7.5), plain(1e-9)], ["12,340", "-7.5", "1.000e-9"]);
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
