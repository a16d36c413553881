//! A scalability law in words.

use findings::Scaling;
use judge::usl::{Estimate, Scalability, Unfit};

use crate::number::{percent, plain, rate, thousands};

/// The law in words.
pub(crate) fn scaling_words(scaling: &Scaling) -> String {
    let unit = scaling.key.rsplit('.').next().unwrap_or_default();
    let beside = match scaling.beside.is_empty() {
        true => String::new(),
        false => format!(" ({})", scaling.beside),
    };
    let left_out = match scaling.left_out.len() {
        0 => String::new(),
        count => format!("; {count} stressed or partial points left out"),
    };
    let words = match &scaling.fit {
        Ok(law) => law_words(law, unit, scaling.used.last().copied().unwrap_or(0.0)),
        Err(Unfit::TooFew(found)) => format!(
            "no scalability law: {found} points are too few, it takes {}",
            judge::usl::MIN_POINTS
        ),
        Err(Unfit::Pattern(residual)) => format!(
            "no scalability law: the points bend otherwise, up to {} off it",
            percent(*residual)
        ),
        Err(Unfit::NoSolution) => "no scalability law: the points have no solution".to_owned(),
    };
    format!("over {unit}{beside}: {words}{left_out}")
}

fn law_words(law: &Scalability, unit: &str, largest: f64) -> String {
    let share =
        |one: &Estimate| format!("{} [{}, {}]", small(one.value), small(one.low), small(one.high));
    let reason = match (law.alpha.value > 0.0, law.beta.value > 0.0) {
        (false, false) => "it grows in proportion".to_owned(),
        (true, false) => format!("contention alone limits it, to {}", rate(law.peak_rate)),
        _ => {
            let beyond = match law.peak.value > 2.0 * largest {
                true => ", far beyond what was measured",
                false => "",
            };
            // Which of the two costs more at the largest N that was measured.
            let contention = law.alpha.value * (largest - 1.0);
            let coherency = law.beta.value * largest * (largest - 1.0);
            let what = if contention > coherency { "contention" } else { "coherency" };
            format!(
                "peak of {} at {} {unit} [{}, {}]{beyond}; {what} dominates",
                rate(law.peak_rate),
                whole(law.peak.value),
                whole(law.peak.low),
                whole(law.peak.high)
            )
        }
    };
    format!(
        "one brings {}, contention α {}, coherency β {}: {reason}",
        rate(law.gamma.value),
        share(&law.alpha),
        share(&law.beta)
    )
}

fn small(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { plain(value) }
}

fn whole(value: f64) -> String {
    if value.is_finite() { thousands(value.round() as u64) } else { "∞".to_owned() }
}
