//! Names of percentiles: `latency.p95`, `staleness.p99.9`, and `latency.p999` for 99.9 %.

use crate::drive::Figure;

/// The distribution and the part of it that does not lie above the percentile: `latency.p99.9` is
/// 0.999 of all latencies. Of three digits and more that begin with a 9, those after the second
/// are decimals: `p9999` is 99.99 %.
pub(crate) fn percentile(name: &str) -> Option<(Figure, f64)> {
    let (distribution, written) = name.split_once(".p")?;
    let figure = match distribution {
        "latency" => Figure::Latency,
        "staleness" => Figure::Staleness,
        _ => return None,
    };
    let is_plain = written.chars().all(|c| c.is_ascii_digit() || c == '.');
    let begins = written.starts_with(|c: char| c.is_ascii_digit());
    if !is_plain || !begins || written.ends_with('.') || written.len() > MAX_DIGITS {
        return None;
    }
    let percent: f64 = match (written.contains('.'), written.split_at_checked(2)) {
        (false, Some((whole, part))) if !part.is_empty() && whole.starts_with('9') => {
            format!("{whole}.{part}").parse()
        }
        _ => written.parse(),
    }
    .ok()?;
    (percent > 0.0 && percent < 100.0).then_some((figure, percent / 100.0))
}

/// A histogram tells no more digits apart than this.
const MAX_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_read_with_a_dot_or_without() {
        let of = |name: &str| percentile(name).map(|(_, part)| (part * 1e6).round() / 1e6);
        assert_eq!(of("latency.p50"), Some(0.5));
        assert_eq!(of("latency.p5"), Some(0.05));
        assert_eq!(of("latency.p95"), Some(0.95));
        assert_eq!(of("latency.p99.9"), of("latency.p999"));
        assert_eq!(of("latency.p9999"), Some(0.9999));
        assert_eq!(percentile("staleness.p90"), Some((Figure::Staleness, 0.9)));
        for name in ["latency.p", "latency.p0", "latency.p100.5", "latency.p1.2.3", "latency.max"] {
            assert_eq!(percentile(name), None, "{name}");
        }
        for name in ["latency.p100", "latency.p500"] {
            assert_eq!(percentile(name), None, "{name}");
        }
        for name in ["latency.p99.", "latency.p.9", "latency.p-5", "lag.p99", "latency.p123456789"]
        {
            assert_eq!(percentile(name), None, "{name}");
        }
    }
}
