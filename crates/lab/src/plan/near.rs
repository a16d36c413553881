//! Names that somebody may have meant.

/// The known name that `unknown` was most likely meant to be, if any is near enough.
pub(crate) fn nearest<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map(|(_, name)| name)
}

/// All known names, the nearest first: those that hold or continue what was written, then those
/// that are spelt alike.
pub(crate) fn nearest_first<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let distance = |name: &str| {
        let is_part = !unknown.is_empty() && (name.contains(unknown) || unknown.contains(name));
        (!is_part, strsim::damerau_levenshtein(unknown, name))
    };
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_by_key(|name| distance(name));
    names
}

/// What metrics are called elsewhere.
const METRICS_ELSEWHERE: &[(&str, &str)] = &[
    ("throughput", "rate_per_s"),
    ("rps", "rate_per_s"),
    ("qps", "rate_per_s"),
    ("tps", "rate_per_s"),
    ("ops", "rate_per_s"),
    ("memory", "server.rss_bytes"),
    ("timeouts", "missing"),
];

/// All metrics as a list for a message, the nearest to `unknown` first.
pub(crate) fn metrics_listed<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let elsewhere = METRICS_ELSEWHERE.iter().find(|(name, _)| *name == unknown);
    nearest_first(elsewhere.map_or(unknown, |(_, name)| *name), known).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_leads_the_list() {
        assert_eq!(nearest("conections", ["name", "connections"]), Some("connections"));
        assert_eq!(nearest("zzzzzz", ["name", "cpus"]), None);
        assert_eq!(nearest_first("p99", ["rate", "latency.p99"]), ["latency.p99", "rate"]);
        let listed = metrics_listed("throughput", ["latency.p99", "rate_per_s"]);
        assert_eq!(listed, "rate_per_s, latency.p99");
    }
}
