//! How a requirement's figure is judged over several rounds, and what disturbances do to it.

use judge::{Direction, Unit};

use crate::drive::Figure;
use crate::plan::{Comparison, ERRORS, Expression, OF_THOSE_ASKED, Requirement, percentile};

/// Metrics that are counted, not estimated: one wrong answer in any round is one too many.
const COUNTED: &[&str] = &["wrong", "refused", "missing", "misses", "missed", "merged", ERRORS];

/// The greatest of all values, of which one over the limit is one too many.
const GREATEST: &[&str] = &["latency.max", "staleness.max"];

/// How a figure of several rounds is judged.
pub(super) enum Kind<'a> {
    /// Added up: a fact.
    Count,
    /// The share of the operations that were asked for.
    Share(&'a str),
    /// The greatest of all values: a fact.
    Greatest,
    /// The part of all values that doesn't lie above it.
    Percentile(Figure, f64),
    /// What a service counts is exact, often nothing, and can't be added up: it has to hold in
    /// every round.
    EachRound,
    /// A mean over rounds.
    Mean,
}

impl Kind<'_> {
    pub(super) fn of(requirement: &Requirement) -> Kind<'_> {
        let is_exact = |name: &&str| *name == "least_updates" || name.starts_with("service.");
        let Expression::Name(name) = &requirement.figure else {
            let exact = requirement.figure.names().iter().any(is_exact);
            return if exact { Kind::EachRound } else { Kind::Mean };
        };
        match (name.strip_suffix(OF_THOSE_ASKED), percentile(name)) {
            (Some(outcome), _) => Kind::Share(outcome),
            _ if COUNTED.contains(&&name[..]) => Kind::Count,
            _ if GREATEST.contains(&&name[..]) => Kind::Greatest,
            _ if is_exact(&&name[..]) => Kind::EachRound,
            (_, Some((figure, part))) => Kind::Percentile(figure, part),
            _ => Kind::Mean,
        }
    }
}

/// What disturbances of the host can do to a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Influence {
    /// Nothing: an answer that is checked is right or wrong however late it comes.
    None,
    /// Make it worse, never better: times get longer, rates fall, answers go missing or refuse.
    Worsens,
    /// Either. A target that is slowed does less: it holds less memory, evicts and misses less,
    /// answers more with each call, and loses fewer of the updates that come more slowly. What
    /// programs and services count themselves, and what is derived, may be anything.
    Either,
}

impl Influence {
    pub(super) fn on(figure: &Expression) -> Self {
        let Expression::Name(name) = figure else { return Self::Either };
        match base(name) {
            "wrong" => Self::None,
            ERRORS | "refused" | "missing" | "least_updates" => Self::Worsens,
            name if percentile(name).is_some() => Self::Worsens,
            name => match judge::metric_named(name) {
                // Speeds. CPU time per operation isn't the clients' and so none.
                Some(metric)
                    if metric.spoiled_by_busy_generator
                        && matches!(
                            metric.unit,
                            Unit::Nanoseconds | Unit::PerSecond | Unit::BytesPerSecond
                        ) =>
                {
                    Self::Worsens
                }
                _ => Self::Either,
            },
        }
    }
}

/// The outcome that is on the good side of a figure: that a latency is below a limit, or that it
/// isn't above one. `None` where neither is.
pub(super) fn good_side(requirement: &Requirement) -> Option<bool> {
    let Expression::Name(name) = &requirement.figure else { return None };
    let name = base(name);
    let is_lower_better = match judge::metric_named(name) {
        Some(metric) => metric.direction == Direction::LowerIsBetter,
        None if name == ERRORS || percentile(name).is_some() => true,
        None => return None,
    };
    match requirement.comparison {
        Comparison::Less | Comparison::LessOrEqual => Some(is_lower_better),
        Comparison::Greater | Comparison::GreaterOrEqual => Some(!is_lower_better),
        // No figure is less than nothing.
        Comparison::Equal => (is_lower_better && requirement.bound == 0.0).then_some(true),
    }
}

/// Whether it is about answers that were checked.
pub(super) fn needs_checks(figure: &Expression) -> bool {
    figure.names().iter().any(|name| ["wrong", ERRORS].contains(&base(name)))
}

/// Whether refusals are counted in it.
pub(super) fn is_about_refusals(figure: &Expression) -> bool {
    figure.names().iter().any(|name| ["refused", ERRORS].contains(&base(name)))
}

/// The name without what makes it a share.
fn base(name: &str) -> &str {
    name.strip_suffix(OF_THOSE_ASKED).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_worsen_speeds_and_may_improve_what_depends_on_how_much_was_done() {
        let on = |name: &str| Influence::on(&Expression::Name(name.to_owned()));
        assert_eq!(on("wrong"), Influence::None);
        assert_eq!(on("wrong of those asked"), Influence::None);
        for name in [
            "missing",
            "refused",
            "errors of those asked",
            "latency.p99",
            "latency.p99.9",
            "latency.mean",
            "staleness.max",
            "rate_per_s",
            "bytes_per_s",
            "least_updates",
        ] {
            assert_eq!(on(name), Influence::Worsens, "{name}");
        }
        for name in [
            "server.rss_bytes",
            "server.cpu_ns_per_op",
            "generator.busy",
            "hit_ratio",
            "misses",
            "missed",
            "merged",
            "fairness",
            "service.evictions",
            "iterations_per_s",
        ] {
            assert_eq!(on(name), Influence::Either, "{name}");
        }
    }
}
