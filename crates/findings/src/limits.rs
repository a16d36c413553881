//! The limits of a target at a point, over its rounds.

use judge::limits::{Figures, Limit, limit_coded};
use ledger::ReachedRow;

use crate::by_trial::ByTrial;
use crate::grade::counted;
use crate::trial_summary::TrialSummary;

/// The limits of one target at one point. Judged are its valid trials; where there is none the
/// disturbed ones, and where there is none of those the invalid ones: what invalidated them may
/// well be the answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LimitsSummary {
    /// Number of trials judged.
    pub trials: usize,
    /// Number of them without a limit.
    pub none_in: usize,
    /// Why it can't be said of those that they reached none; `None` where it can.
    pub unseen: Option<String>,
    /// The limits reached, the one that is first in most trials at the head.
    pub reached: Vec<LimitSummary>,
    /// The resources that target and load share, in words; `None` when unknown.
    pub shared: Option<String>,
    /// The CPU time of the target, in cores.
    pub server_cores: Option<f64>,
}

/// One limit over the trials in which it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSummary {
    /// Its code.
    pub code: String,
    /// Number of trials in which it was reached.
    pub trials: usize,
    /// Number of them in which it was the first.
    pub first_in: usize,
    /// Its greatest strength.
    pub strength: f64,
    /// The evidence of the trial in which it was strongest.
    pub evidence: String,
}

impl LimitSummary {
    /// Its row in the index; `None` when a newer loadline wrote it.
    pub fn limit(&self) -> Option<&'static Limit> {
        limit_coded(&self.code)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.limit().map_or(&self.code, |limit| limit.name)
    }
}

impl LimitsSummary {
    /// Of one target's trials at one point.
    pub(crate) fn of(trials: &[&TrialSummary], reached: &ByTrial<'_, ReachedRow>) -> LimitsSummary {
        let seen = trials.iter().copied().filter(|trial| trial.row.shared.is_some());
        let judged = counted(&seen.collect::<Vec<_>>());
        let mut limits: Vec<LimitSummary> = Vec::new();
        let (mut none_in, mut unseen) = (0, None);
        for trial in &judged {
            let rows = reached.of(trial.id);
            none_in += usize::from(rows.is_empty());
            if rows.is_empty() && unseen.is_none() {
                unseen = judge::limits::unseen(&trial.usage);
            }
            rows.iter().for_each(|row| note(&mut limits, row));
        }
        limits.sort_by(|a, b| {
            (b.first_in, b.trials).cmp(&(a.first_in, a.trials)).then(a.code.cmp(&b.code))
        });
        let sum = |of: fn(&Figures) -> Option<f64>| {
            judged.iter().map(|trial| of(&trial.usage)).sum::<Option<f64>>()
        };
        let server_cores = sum(|seen| seen.server_cpu_ns).zip(sum(|seen| seen.measured_ns));
        LimitsSummary {
            trials: judged.len(),
            none_in,
            unseen,
            reached: limits,
            shared: judged.iter().find_map(|trial| trial.row.shared.clone()),
            server_cores: server_cores.filter(|(_, ns)| *ns > 0.0).map(|(cpu, ns)| cpu / ns),
        }
    }

    /// The first limit of most trials; `None` when most of them have none.
    pub fn first(&self) -> Option<&LimitSummary> {
        self.reached.first().filter(|first| first.first_in > 0 && first.first_in >= self.none_in)
    }
}

fn note(limits: &mut Vec<LimitSummary>, row: &ReachedRow) {
    let first = usize::from(row.rank == 1);
    match limits.iter_mut().find(|one| one.code == row.code) {
        Some(one) => {
            one.trials += 1;
            one.first_in += first;
            if row.strength > one.strength {
                (one.strength, one.evidence) = (row.strength, row.evidence.clone());
            }
        }
        None => limits.push(LimitSummary {
            code: row.code.clone(),
            trials: 1,
            first_in: first,
            strength: row.strength,
            evidence: row.evidence.clone(),
        }),
    }
}
