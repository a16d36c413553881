//! The limits reached: a line per target, the resources that it shares with the load, and advice.

use findings::{LimitSummary, LimitsSummary, Summary, TargetSummary};

use crate::document::{Depth, Line, Role};
use crate::number::percent;
use crate::schedule;

/// The lines of one point; none when nothing was judged.
pub(super) fn lines(summary: &Summary, index: usize) -> Vec<Line> {
    let targets = &summary.points[index].targets;
    // Where nothing was answered, no limit says why.
    let is_judged =
        |target: &&TargetSummary| target.limits.trials > 0 && target.figures.operations > 0;
    let judged = || targets.iter().filter(is_judged);
    let mut lines = Vec::new();
    let mut advised: Vec<&str> = Vec::new();
    for target in judged() {
        let whose = match targets.len() {
            1 => String::new(),
            _ => format!("{}: ", summary.targets[target.target].name),
        };
        let role = if target.limits.first().is_some() { Role::Strong } else { Role::Dim };
        let mean = match schedule::is_uneven(target) {
            true => "; a mean over the whole schedule: at its busiest more is used",
            false => "",
        };
        let words = words(target) + mean;
        lines.push(Line::from(format!("limit: {whose}")).and(role, words).printed_once());
        if let Some(limit) = target.limits.first().and_then(LimitSummary::limit)
            && !advised.contains(&limit.code)
        {
            advised.push(limit.code);
            let advice = Line::with_role(Role::Dim, format!("try: {}", limit.advice));
            lines.push(advice.deeper(Depth::One).printed_once());
        }
    }
    let mut shared: Vec<&str> = Vec::new();
    for words in judged().filter_map(|target| target.limits.shared.as_deref()) {
        if !words.is_empty() && !shared.contains(&words) {
            shared.push(words);
        }
    }
    let line =
        |words| Line::with_role(Role::Dim, format!("shared by both sides: {words}")).printed_once();
    lines.extend(shared.into_iter().map(line));
    lines
}

/// `one server thread: it runs 99 % of the time … (5 of 5 rounds); then the disk`.
fn words(target: &TargetSummary) -> String {
    let limits: &LimitsSummary = &target.limits;
    let Some(first) = limits.first() else {
        let server = limits.server_cores.map(|cores| format!("server {cores:.2} cores"));
        let busy = target.figures.generator_busy;
        let generator = busy.map(|busy| format!("generator {} busy", percent(busy)));
        let seen: Vec<String> = [server, generator].into_iter().flatten().collect();
        let seen = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join(", ")) };
        let none = limits.unseen.as_ref().map(|why| format!("unseen: {why}"));
        let none = none.unwrap_or_else(|| "none reached".to_owned());
        return format!("{none}{seen}{}", besides(limits, None));
    };
    let rounds = match (first.first_in, limits.trials) {
        (_, 1) => String::new(),
        (found, all) => format!(" (first in {found} of {all} rounds)"),
    };
    let besides = besides(limits, Some(first));
    format!("{}: {}{rounds}{besides}", first.name(), first.evidence)
}

fn besides(limits: &LimitsSummary, first: Option<&LimitSummary>) -> String {
    let others: Vec<String> = limits
        .reached
        .iter()
        .filter(|one| Some(*one) != first)
        .map(|one| format!("{} in {} of {}", one.name(), one.trials, limits.trials))
        .collect();
    if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) }
}
