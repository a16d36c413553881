//! One point as text: a line per target, the verdicts, and every caveat.

use std::collections::BTreeMap;

use findings::{
    Compared, Figures, FindingSummary, PointSummary, StreamFigures, Summary, TargetSummary,
};
use judge::{Unit, Verdict};
use ledger::{RequirementOutcome, Validity};

use super::bytes::difference;
use super::limits;
use super::line::Line;
use super::notes;
use super::paint::{Paint, Role};
use crate::columns::Columns;
use crate::escape::one_line;
use crate::number::{Scale, count, duration, percent, share, whole_percent};
use crate::phrases::{self, interval, named_latency};
use crate::requirements;
use crate::wrap::{table, wrapped};

/// The metrics that stand in a target's line in any case.
const SHOWN: &[&str] = &[
    "rate_per_s",
    "latency.p50",
    "latency.p99",
    "bytes_per_s",
    "hit_ratio",
    "wrong",
    "missing",
    "staleness.p50",
    "staleness.p99",
    "missed",
    "server.cpu_ns_per_op",
    "generator.cpu_ns_per_op",
    "generator.busy",
];

/// Wrong answers shown per trial; the rest are counted.
const FINDINGS_SHOWN: usize = 3;

/// Answers under which a p99 is marked as rough: a hundred should lie beyond it.
const MIN_P99_ANSWERS: u64 = 10_000;

/// One point of a run. Ends with a newline; empty when there is no such point.
pub fn point(summary: &Summary, index: usize, colour: bool) -> String {
    match index < summary.points.len() {
        true => wrapped(&Line::text_of(&lines(summary, index, Paint::new(colour)))),
        false => String::new(),
    }
}

/// The lines of one point, as wide as they are.
pub(super) fn lines(summary: &Summary, index: usize, paint: Paint) -> Vec<Line> {
    let point = &summary.points[index];
    let view = View { summary, index, point, paint, columns: Columns::of(summary, point) };
    let own = |lines: Vec<String>| lines.into_iter().map(Line::own);
    let notes = |lines: Vec<String>| lines.into_iter().map(Line::note);
    let mut lines = vec![Line::own(view.header())];
    lines.extend(own(view.targets()));
    lines.extend(own(notes::groups_of(summary, point)));
    lines.extend(notes(notes::lines(summary, index, paint)));
    match summary.contest {
        Some(_) => {
            lines.extend(own(view.verdicts()));
            lines.extend(own(view.contest()));
        }
        // A ladder's verdicts stand together at its end.
        None if !summary.rungs.is_empty() => {}
        None => {
            lines.extend(own(view.verdicts()));
            lines.extend(own(view.besides()));
        }
    }
    lines.extend(notes(limits::lines(summary, point, paint)));
    lines.extend(own(view.requirements()));
    lines.extend(notes(view.spoiled()));
    lines.extend(own(view.findings()));
    lines
}

struct View<'a> {
    summary: &'a Summary,
    index: usize,
    point: &'a PointSummary,
    paint: Paint,
    columns: Columns,
}

impl View<'_> {
    fn header(&self) -> String {
        let PointSummary { rounds, valid_rounds, .. } = self.point;
        let label = one_line(&self.point.row.label);
        let many = phrases::many(*rounds, "round");
        let measured =
            self.point.measured_ns.map_or_else(String::new, |ns| format!(" × {}", span(ns)));
        let slices =
            self.point.slice_ns.map_or_else(String::new, |ns| format!(" in {} slices", span(ns)));
        let valid = phrases::valid_rounds(self.point);
        let valid = match valid_rounds == rounds {
            true => valid,
            false => self.paint.text(Role::Unsure, &valid),
        };
        let again: usize = self.point.targets.iter().map(|one| one.slices_measured_again).sum();
        let again = match again {
            0 => String::new(),
            again => format!("; {} measured again", phrases::many(again, "slice")),
        };
        format!("{label} · {many}{measured}{slices} · {valid}{again}")
    }

    /// One line per target, its cells aligned.
    fn targets(&self) -> Vec<String> {
        let rows: Vec<Vec<String>> =
            self.point.targets.iter().map(|target| self.cells(target)).collect();
        table(&rows, 2, |name| self.paint.text(Role::Strong, name))
    }

    fn cells(&self, target: &TargetSummary) -> Vec<String> {
        let name = one_line(&self.summary.targets[target.target].name);
        let figures = &target.figures;
        let mut cells = vec![name];
        if self.point.targets.iter().any(|one| !one.grade.is_clean()) {
            cells.push(target.grade.word().to_owned());
        }
        if target.measured_ns == 0 && target.operations_of_all == 0 {
            cells.push("nothing was measured".to_owned());
            return cells;
        }
        let mut right = phrases::answers(target);
        if let Some(hits) = figures.hit_ratio {
            right.push_str(&format!(", {} hits", share(hits)));
        }
        let rate = phrases::rate_in(target, self.columns.rate);
        let rate = rate.unwrap_or_else(|| "rate unseen".to_owned());
        if figures.operations == 0 && figures.streams.is_none() && figures.reported.is_empty() {
            cells.extend([rate, right]);
            return cells;
        }
        let primary = phrases::primary_unless(self.summary, SHOWN);
        // Of streams, updates are the operations: one figure, under two names.
        let is_rate = target.primary.zip(target.rate).is_some_and(|(primary, rate)| {
            primary.mean / rate.mean > 1.0 - 1e-9 && primary.mean / rate.mean < 1.0 + 1e-9
        });
        cells.extend(primary.filter(|_| !is_rate).map(|primary| {
            let scale = self.columns.primary;
            format!("{} {}", primary.suite, phrases::primary_in(target, primary, scale))
        }));
        cells.push(rate);
        if let Some(streams) = &figures.streams {
            cells.extend(stream_cells(streams));
        }
        if figures.streams.is_none() || figures.latency.count > 0 {
            let rough = figures.latency.count < MIN_P99_ANSWERS;
            cells.push(named_latency("p50", figures.latency.p50_ns, false, self.columns.p50));
            cells.push(named_latency("p99", figures.latency.p99_ns, rough, self.columns.p99));
        }
        cells.extend(figures.bytes_per_s.map(|moved| self.columns.bytes.show(moved)));
        // A schedule's latency counts from the scheduled time, so the lag of the generator itself
        // is shown beside it.
        if self.point.targets.iter().any(|target| target.figures.lag.count > 0) {
            cells.push(named_latency("lag p99", figures.lag.p99_ns, false, self.columns.lag));
        }
        let Columns { server, generator, .. } = self.columns;
        cells.extend([right, server_cell(figures, server), generator_cell(figures, generator)]);
        cells
    }

    /// The verdicts of the primary metric, one line per other target.
    fn verdicts(&self) -> Vec<String> {
        let primary: Vec<&Compared> =
            self.summary.comparisons_at(self.index).filter(|one| one.primary).collect();
        let line = |compared: &&Compared| {
            let subject = &self.summary.targets[compared.a].name;
            let other = match primary.len() {
                1 => String::new(),
                _ => format!(" {}", self.summary.targets[compared.b].name),
            };
            let than = if other.is_empty() { "" } else { " than" };
            let within = whole_percent(self.summary.run.same_within);
            let (role, words) = match compared.verdict {
                Verdict::Better => (Role::Good, format!("{subject} better{than}{other}")),
                Verdict::Worse => (Role::Bad, format!("{subject} worse{than}{other}")),
                Verdict::Same if other.is_empty() => (Role::Good, format!("same within ±{within}")),
                Verdict::Same => (Role::Good, format!("{subject} same as{other} within ±{within}")),
                Verdict::CantTell { why, .. } => {
                    let against = if other.is_empty() { "" } else { " against" };
                    (Role::Unsure, format!("can't tell ({}){against}{other}", why.words()))
                }
            };
            let metric = match &*compared.metric.suite {
                "rate_per_s" => String::new(),
                name => format!("{name} "),
            };
            let words = self.paint.text(role, &one_line(&words));
            format!("  verdict: {words}, {metric}{}{}", interval(compared), advice(compared))
        };
        let likely = |compared: &&Compared| {
            let words = crate::phrases::likely(self.summary, compared)?;
            let against = match primary.len() {
                1 => String::new(),
                _ => format!(" against {}", one_line(&self.summary.targets[compared.b].name)),
            };
            Some(format!("    {words}{against}"))
        };
        let lines = |one: &&Compared| [Some(line(one)), likely(one)].into_iter().flatten();
        primary.iter().flat_map(lines).collect()
    }

    /// Every metric of a run that is one comparison.
    fn contest(&self) -> Vec<String> {
        let mut lines = crate::contest::table(self.summary, self.index);
        if let Some(head) = lines.first_mut() {
            *head = self.paint.text(Role::Dim, head);
        }
        lines
    }

    /// The verdicts of the secondary metrics.
    fn besides(&self) -> Vec<String> {
        let others: Vec<usize> =
            self.point.targets.iter().map(|one| one.target).filter(|target| *target > 0).collect();
        let mut lines = Vec::new();
        for other in &others {
            let compared = self.summary.comparisons_at(self.index);
            let compared = compared.filter(|one| !one.primary && one.b == *other);
            let shown: Vec<&Compared> = compared.filter(|one| one.interval.is_some()).collect();
            if shown.is_empty() {
                continue;
            }
            let said = |one: &&Compared| {
                let words = format!("{} {} ", one.metric.suite, phrases::plain_interval(one));
                (words + &phrases::verdict_beside(one)).trim_end().to_owned()
            };
            let mut words = shown.iter().map(said).collect::<Vec<_>>().join(" · ");
            if let Some(note) = phrases::bound_note(&shown, &self.names()) {
                words.push_str(&format!(" ({note})"));
            }
            let against = match others.len() {
                1 => String::new(),
                _ => format!(" {}", one_line(&self.summary.targets[*other].name)),
            };
            let line = format!("beside{against}: {words}");
            lines.push(format!("  {}", self.paint.text(Role::Dim, &line)));
        }
        lines
    }

    fn names(&self) -> Vec<String> {
        self.summary.targets.iter().map(|target| one_line(&target.name)).collect()
    }

    fn requirements(&self) -> Vec<String> {
        let line = |requirement: &findings::RequirementSummary| {
            let row = &requirement.row;
            let role = match row.outcome {
                RequirementOutcome::Held => Role::Good,
                RequirementOutcome::Broken => Role::Bad,
                RequirementOutcome::CantTell => Role::Unsure,
            };
            let word = self.paint.text(role, requirements::outcome(row.outcome));
            let figure = requirements::figure(row);
            format!("  require {}: {word}, {figure}", one_line(&row.expression))
        };
        requirements::at_point(self.summary, self.index).map(line).collect()
    }

    /// What disturbed and invalidated trials.
    fn spoiled(&self) -> Vec<String> {
        let line = |(validity, words): (Validity, String)| {
            let role = match validity {
                Validity::Invalid => Role::Bad,
                _ => Role::Unsure,
            };
            format!("  {}: {words}", self.paint.text(role, validity.word()))
        };
        crate::grade::lines(self.summary, self.index).into_iter().map(line).collect()
    }

    fn findings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let trials = &self.summary.trials;
        let mut by_trial: BTreeMap<usize, Vec<&FindingSummary>> = BTreeMap::new();
        for one in self.summary.findings.iter().filter(|one| trials[one.trial].point == self.index)
        {
            by_trial.entry(one.trial).or_default().push(one);
        }
        for (index, here) in by_trial {
            let trial = &trials[index];
            let name = one_line(&self.summary.targets[trial.target].name);
            let title = format!("wrong answers of {name}, round {}:", trial.round);
            lines.push(format!("  {}", self.paint.text(Role::Bad, &title)));
            for FindingSummary { row, .. } in here.iter().take(FINDINGS_SHOWN) {
                let (operation, key) = (one_line(&row.operation), one_line(&row.key));
                let at = duration(row.at_ns as f64);
                lines.push(format!("    {operation} {key} at {at}: {}", one_line(&row.note)));
                // Of a program that failed there are none to compare.
                let has_bytes = !(row.expected.is_empty() && row.received.is_empty());
                let bytes = has_bytes.then(|| difference(&row.expected, &row.received));
                let bytes = bytes.unwrap_or_default();
                lines.extend(bytes.into_iter().map(|line| format!("      {line}")));
            }
            let known = trial.row.wrong.max(here.len() as u64);
            let rest = known - here.len().min(FINDINGS_SHOWN) as u64;
            if rest > 0 {
                lines.push(format!("    and {} more", count(rest)));
            }
        }
        lines
    }
}

/// A length of time that a suite asked for: measured to the nanosecond, meant in round figures.
fn span(ns: u64) -> String {
    let ms = (ns as f64 / 1e6).round();
    let tenths = (ms / 100.0).round();
    match ms {
        ms if ms < 1.0 => duration(ns as f64),
        ms if ms < 1000.0 => format!("{ms} ms"),
        _ => format!("{} s", tenths / 10.0),
    }
}

/// The staleness of updates, and those that were missed.
fn stream_cells(streams: &StreamFigures) -> [String; 2] {
    let staleness = &streams.staleness;
    let stale = match staleness.count {
        0 => "staleness unseen".to_owned(),
        _ => {
            let both = [staleness.p50_ns, staleness.p99_ns].into_iter().flatten();
            let scale = Scale::of(Unit::Nanoseconds, both.map(|ns| ns as f64));
            let rough = staleness.count < MIN_P99_ANSWERS;
            let p99 = named_latency("p99", staleness.p99_ns, rough, scale);
            format!("{} {p99}", named_latency("stale p50", staleness.p50_ns, false, scale))
        }
    };
    let merged = match streams.merged {
        0 => String::new(),
        merged => format!(" ({} said)", count(merged)),
    };
    let fair = match streams.fairness.filter(|_| streams.streams > 1) {
        Some(fairness) => format!(", fair {}", percent(fairness)),
        None => String::new(),
    };
    [stale, format!("{} missed{merged}{fair}", count(streams.missed))]
}

fn server_cell(figures: &Figures, scale: Scale) -> String {
    let Some(cpu) = figures.server.cpu_ns_per_op else { return "server CPU unseen".to_owned() };
    let kernel = match figures.server.kernel_share() {
        Some(share) => format!(" ({} kernel)", percent(share)),
        None => String::new(),
    };
    format!("server {} CPU/op{kernel}", scale.show(cpu))
}

fn generator_cell(figures: &Figures, scale: Scale) -> String {
    let busy = figures.generator_busy.map(|busy| format!("{} busy", percent(busy)));
    let cpu = figures.generator.cpu_ns_per_op.map(|cpu| format!("{} CPU/op", scale.show(cpu)));
    match (cpu, busy) {
        (Some(cpu), Some(busy)) => format!("generator {cpu} ({busy})"),
        (Some(one), None) | (None, Some(one)) => format!("generator {one}"),
        (None, None) => "generator unseen".to_owned(),
    }
}

fn advice(compared: &Compared) -> String {
    match compared.verdict {
        Verdict::CantTell { more_rounds: Some(more), .. } => {
            format!(" · about {} would tell", phrases::many(more as usize, "more round"))
        }
        _ => String::new(),
    }
}
