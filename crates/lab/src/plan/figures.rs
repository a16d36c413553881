//! `[figures]`: what a suite's programs report, so that it can be judged like a metric.

use std::collections::BTreeMap;

use judge::{Direction, Metric, Metrics, Unit};
use load::Reach;

use super::check::Result;
use super::error::{Source, nearest};
use super::near::metrics_listed;
use super::suite::{BetterSpec, FigureSpec};
use super::types::{Point, Target, TargetKind};
use crate::drive::Arrivals;
use crate::drive::batch::BATCH_FIGURES;

/// The metrics of a suite that declares these figures.
pub(super) fn resolve(source: &Source, specs: &BTreeMap<String, FigureSpec>) -> Result<Metrics> {
    let reported = specs.iter().map(|(name, spec)| {
        let direction = match spec.better {
            BetterSpec::Higher => Direction::HigherIsBetter,
            BetterSpec::Lower => Direction::LowerIsBetter,
        };
        let unit = unit(source, name, spec)?;
        let metric = Metric::reported(name, direction, unit);
        metric.map_err(|problem| source.error_at(&format!("figures.{name}"), problem, None))
    });
    reported.collect::<Result<_>>().map(Metrics::with_reported)
}

fn unit(source: &Source, name: &str, spec: &FigureSpec) -> Result<Unit> {
    let Some(word) = &spec.unit else { return Ok(Unit::of_name(name)) };
    Unit::of_word(word).ok_or_else(|| {
        let known = Unit::words().collect::<Vec<_>>().join(", ");
        let help = "report it in one of them; they are what requirements are read in, too";
        let message = format!("no unit \"{word}\"; there are: {known}");
        source.error_at(&format!("figures.{name}.unit"), message, Some(help.to_owned()))
    })
}

/// The metric that carries verdicts.
pub(super) fn primary(
    source: &Source,
    metrics: &Metrics,
    written: Option<&str>,
    points: &[Point],
) -> Result<Metric> {
    let written = written.unwrap_or("rate_per_s");
    let Some(metric) = metrics.named(written).filter(|metric| metric.suite == written) else {
        let near = nearest(written, metrics.iter().map(|row| &*row.suite));
        let help = match near {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!(
                "if programs report it, say which direction is good: \
                 [figures] {written} = {{ better = \"higher\" }}"
            ),
        };
        let known = metrics_listed(written, metrics.iter().map(|row| &*row.suite));
        let message = format!("no metric \"{written}\"; there are: {known}");
        return Err(source.error_at("rounds.primary", message, Some(help)));
    };
    if metric.sql.is_none() {
        for point in points {
            point.targets.iter().try_for_each(|target| reports(source, point, target, written))?;
        }
    }
    Ok(metric.clone())
}

/// Refuses requirements on figures that the first target can't report: they could never hold.
pub(super) fn check_required(source: &Source, metrics: &Metrics, point: &Point) -> Result<()> {
    let Some(first) = point.targets.first() else { return Ok(()) };
    let names = point.requirements.iter().flat_map(|requirement| requirement.figure.names());
    let of_programs = |name: &&str| metrics.reported().iter().any(|metric| metric.suite == *name);
    names.filter(of_programs).try_for_each(|name| reports(source, point, first, name))
}

/// Refuses a target that can't report the figure that it is judged by.
fn reports(source: &Source, point: &Point, target: &Target, figure: &str) -> Result<()> {
    let is_in_steps = point.clients.iter().any(|group| group.arrivals == Arrivals::Steps);
    let key = |part: &str| format!("target.{}.{part}", target.name);
    match &target.kind {
        TargetKind::Batch(_) => {
            let picked = target.figures.iter().map(|(name, _)| &name[..]);
            if picked.chain(BATCH_FIGURES.iter().copied()).any(|name| name == figure) {
                return Ok(());
            }
            let message = format!("{figure} is not picked out of its output");
            let help = format!("figures = {{ {figure} = '{figure}=([0-9.]+)' }}");
            Err(source.error_at(&key("batch"), message, Some(help)))
        }
        TargetKind::InProcess => Ok(()),
        // Which of them a call reports, its service's documents say.
        _ if target.speaks.dialect.reach == Reach::Calls => Ok(()),
        _ if target.client.is_some() || is_in_steps => Ok(()),
        _ => {
            let message = format!("{figure} is reported by programs, and this target has none");
            let help = "give it a client = [\"program\", …], or choose a metric of the lab";
            Err(source.error_at(&key("name"), message, Some(help.to_owned())))
        }
    }
}
