//! Numbers as people read them: three digits that matter, and a unit. Figures that stand under each
//! other share a unit, whichever suits the smallest of them.

use judge::Unit;

/// The unit that figures of one kind are shown in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    one: f64,
    unit: &'static str,
}

/// The units of a kind, each with how much one of it is.
type Units = &'static [(f64, &'static str)];

const RATES: Units = &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")];
const TIMES: Units = &[(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")];
const BYTES: Units = &[
    (1.0, " B"),
    (1024.0, " KiB"),
    (1_048_576.0, " MiB"),
    (1_073_741_824.0, " GiB"),
    (1_099_511_627_776.0, " TiB"),
];
/// Powers of ten, as links and buses are rated.
const BYTE_RATES: Units = &[(1.0, " B/s"), (1e3, " kB/s"), (1e6, " MB/s"), (1e9, " GB/s")];

/// From here on a figure takes the next unit, though the smallest beside it is then below one.
const MAX_SHOWN: f64 = 99_950.0;

impl Scale {
    /// The scale of these figures.
    pub(crate) fn of(unit: Unit, figures: impl IntoIterator<Item = f64>) -> Scale {
        let units = match unit {
            Unit::PerSecond => RATES,
            Unit::Nanoseconds => TIMES,
            Unit::Bytes => BYTES,
            Unit::BytesPerSecond => BYTE_RATES,
            Unit::Fraction => &[(0.01, " %")],
            Unit::Count | Unit::Number => &[(1.0, "")],
        };
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for figure in figures.into_iter().filter(|figure| *figure > 0.0) {
            (least, most) = (least.min(figure), most.max(figure));
        }
        // What rounds to one of a unit is shown in it.
        let suits = |(one, _): &&(f64, &str)| {
            most > 0.0 && (least >= 0.9995 * one || most >= MAX_SHOWN * one / 1e3)
        };
        let (one, unit) = units.iter().rev().find(suits).copied().unwrap_or(units[0]);
        Scale { one, unit }
    }

    /// A figure with the unit: `6.91M/s`, `33.0 µs`, `2,960 ns`.
    pub(crate) fn show(self, figure: f64) -> String {
        format!("{}{}", three_digits(figure / self.one), self.unit)
    }
}

fn alone(unit: Unit, figure: f64) -> String {
    Scale::of(unit, [figure]).show(figure)
}

/// A rate: `6.91M/s`, `271k/s`, `512/s`.
pub fn rate(per_s: f64) -> String {
    alone(Unit::PerSecond, per_s)
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

/// A duration given in ns: `850 ns`, `9.10 µs`, `120 µs`, `12.3 ms`, `1.23 s`.
pub fn duration(ns: f64) -> String {
    alone(Unit::Nanoseconds, ns)
}

/// A cost in ns, in that unit while it is readable: `8.30 ns`, `145 ns`, `1,500 ns`.
pub fn nanoseconds(ns: f64) -> String {
    match ns {
        t if t < MAX_SHOWN => format!("{} ns", three_digits(t)),
        t => duration(t),
    }
}

/// A number of things: `1,502`, `1.64 M`, `172 M`, `3.10 G`.
pub fn count(things: u64) -> String {
    match things {
        n if n < 1_000_000 => thousands(n),
        n if n < 999_500_000 => format!("{} M", three_digits(n as f64 / 1e6)),
        n => format!("{} G", three_digits(n as f64 / 1e9)),
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
    alone(Unit::Bytes, bytes)
}

/// Bytes per second: `1.70 GB/s`.
pub(crate) fn bytes_per_s(per_s: f64) -> String {
    alone(Unit::BytesPerSecond, per_s)
}

/// A share that is a figure, as a percentage: `87.3 %`, `100 %`.
pub(crate) fn share(fraction: f64) -> String {
    alone(Unit::Fraction, fraction)
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
pub(crate) fn whole_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 10.0 && (percent - percent.round()).abs() > 0.05 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A confidence as a percentage: `97.5 %`, `99.99 %`.
pub(crate) fn confidence(confidence: f64) -> String {
    let text = format!("{:.2}", confidence * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A ratio without its sign: `10.4`, `2.31`, `1.031`, `0.104`, `0.00029`. Near 1 three decimals are
/// shown, as differences of a few percent are what is decided there; a small one has two digits.
pub fn ratio(ratio: f64) -> String {
    match ratio {
        r if r > 0.0 && r < 0.009_95 => {
            let zeros = -r.log10().floor() as usize;
            format!("{r:.*}", zeros + 1)
        }
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r if r >= 1.9995 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// A ratio with its interval: `1.976× [1.915, 2.04]`. An interval without 1 isn't shown as touching
/// it.
pub(crate) fn ratio_within(middle: f64, low: f64, high: f64) -> String {
    let excludes = low > 1.0 || high < 1.0;
    let shown = |end: f64| {
        let more = (4..=9).map(|digits| format!("{end:.digits$}"));
        let mut all = [ratio(end)].into_iter().chain(more);
        let is_clear = |text: &String| !excludes || text.parse() != Ok(1.0);
        all.find(is_clear).unwrap_or_else(|| ratio(end))
    };
    format!("{}× [{}, {}]", ratio(middle), shown(low), shown(high))
}

/// A metric's value with its unit.
pub fn value_of(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => count(value.max(0.0).round() as u64),
        Unit::Number => plain(value),
        unit => alone(unit, value),
    }
}

/// A metric's value in the unit of those that it is read beside.
pub(crate) fn value_in(value: f64, unit: Unit, scale: Scale) -> String {
    match unit {
        Unit::Count | Unit::Number => value_of(value, unit),
        _ => scale.show(value),
    }
}

/// Two values of a metric that are read beside each other.
pub(crate) fn in_one_unit(both: [f64; 2], unit: Unit) -> [String; 2] {
    let scale = Scale::of(unit, both);
    both.map(|value| value_in(value, unit, scale))
}

/// Three digits that matter: `0.0123`, `6.91`, `33.0`, `271`, `2,960`.
fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    let place = |value: f64| value.abs().log10().floor() as i32;
    let unit = 10_f64.powi(place(value) - 2);
    let rounded = (value / unit).round() * unit;
    match usize::try_from(2 - place(rounded * (1.0 + 1e-9))) {
        Ok(digits) => format!("{rounded:.digits$}"),
        Err(_) => plain(rounded),
    }
}

/// `2026-01-02T03:04:05.678Z` as people read it: `2026-01-02 03:04 UTC`.
pub(crate) fn moment(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16), rfc3339.ends_with('Z')) {
        (Some(day), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => rfc3339.to_owned(),
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
            [rate(6.912e6), rate(0.66e6), rate(12_400.0), rate(999.7), rate(0.0)],
            ["6.91M/s", "660k/s", "12.4k/s", "1.00k/s", "0/s"]
        );
        assert_eq!([duration(33_100.0), duration(120_000.0)], ["33.1 µs", "120 µs"]);
        assert_eq!([duration(850.0), duration(9_100.0)], ["850 ns", "9.10 µs"]);
        assert_eq!([duration(5e9), duration(12.34e6)], ["5.00 s", "12.3 ms"]);
        assert_eq!([nanoseconds(145.2), nanoseconds(1502.0)], ["145 ns", "1,500 ns"]);
        assert_eq!(
            [count(172_000_000), count(1_640_000), count(999_900_000), count(0)],
            ["172 M", "1.64 M", "1.00 G", "0"]
        );
        assert_eq!([share(0.8734), share(1.0), share(0.0)], ["87.3 %", "100 %", "0 %"]);
        assert_eq!([percent(0.019), percent(0.62), percent(0.0004)], ["1.9 %", "62 %", "0.04 %"]);
        assert_eq!([ratio(10.44), ratio(1.0312), ratio(0.1039)], ["10.4", "1.031", "0.104"]);
        assert_eq!([ratio(0.033), ratio(0.003), ratio(0.000_287)], ["0.033", "0.0030", "0.00029"]);
        assert_eq!([ratio(0.0), ratio(1e-30).len().to_string()], ["0.000", "33"]);
        assert_eq!([bytes(512.0), bytes(268_435_456.0)], ["512 B", "256 MiB"]);
        assert_eq!(
            [plain(0.0), plain(3.0), plain(1.23456), plain(0.001_234_5)],
            ["0", "3", "1.235", "0.001234"]
        );
        assert_eq!([plain(12_340.0), plain(-7.5), plain(1e-9)], ["12,340", "-7.5", "1.000e-9"]);
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!([confidence(0.975), confidence(0.999_87)], ["97.5 %", "99.99 %"]);
    }

    #[test]
    fn figures_under_each_other_share_the_unit_of_the_smallest_unless_it_makes_the_largest_long() {
        let shown = |unit, figures: [f64; 2]| figures.map(|one| Scale::of(unit, figures).show(one));
        assert_eq!(shown(Unit::PerSecond, [3.394e6, 330_100.0]), ["3,390k/s", "330k/s"]);
        assert_eq!(shown(Unit::Nanoseconds, [72_000.0, 730_400.0]), ["72.0 µs", "730 µs"]);
        assert_eq!(shown(Unit::Nanoseconds, [850.0, 1.2e6]), ["0.850 µs", "1,200 µs"]);
        assert_eq!(shown(Unit::Nanoseconds, [0.0, 5e6]), ["0 ms", "5.00 ms"]);
        assert_eq!(shown(Unit::Bytes, [1048576.0, 524288.0]), ["1,020 KiB", "512 KiB"]);
    }

    #[test]
    fn an_interval_that_excludes_1_is_not_shown_as_touching_it() {
        assert_eq!(ratio_within(0.999, 0.998, 0.99996), "0.999× [0.998, 0.99996]");
        assert_eq!(ratio_within(1.001, 1.0003, 1.002), "1.001× [1.0003, 1.002]");
        assert_eq!(ratio_within(1.0, 0.99996, 1.00004), "1.000× [1.000, 1.000]");
        assert_eq!(ratio_within(10.44, 10.0, 10.9), "10.4× [10.0, 10.9]");
    }
}
