//! What a target's connections did at a point, and what would help it, over its rounds.

use std::collections::BTreeMap;

use ledger::{AdviceRow, StatementRow};

use crate::by_trial::ByTrial;
use crate::grade::counted;
use crate::trial_summary::TrialSummary;

/// What one target's connections did at one point, of its valid trials, else of the disturbed ones,
/// else of the invalid ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActivitySummary {
    /// The trials in which that was seen.
    pub trials: usize,
    /// How many connections were in a statement, on average.
    pub active: f64,
    /// The classes of what they waited for (`IO`), or `running`, each with its share of their time,
    /// the greatest first.
    pub waits: Vec<(String, f64)>,
    /// The statement in which most connections were: in the last of these trials.
    pub top: Option<StatementRow>,
    /// What would help, that which comes first in most trials at the head.
    pub advice: Vec<AdviceSummary>,
}

/// One advice over the trials in which it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct AdviceSummary {
    /// The number of trials in which it was given.
    pub trials: usize,
    /// Those of them in which it came first.
    pub first_in: usize,
    /// As it was given in the last of them.
    pub row: AdviceRow,
    /// The statement that it is about, if it was kept.
    pub statement: Option<StatementRow>,
}

impl ActivitySummary {
    /// Of one target's trials at one point.
    pub(crate) fn of(
        trials: &[&TrialSummary],
        statements: &ByTrial<'_, StatementRow>,
        advice: &ByTrial<'_, AdviceRow>,
    ) -> Self {
        let seen: Vec<_> = counted(trials)
            .into_iter()
            .filter(|trial| !statements.of(trial.id).is_empty())
            .collect();
        let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
        let mut all = Self { trials: seen.len(), ..Self::default() };
        for trial in &seen {
            let own = statements.of(trial.id);
            for (wait, active) in own.iter().flat_map(|row| &row.waits) {
                let class = wait.split('/').next().unwrap_or(wait);
                *classes.entry(class).or_default() += active;
            }
            all.top = own.first().copied().cloned();
            for row in advice.of(trial.id) {
                let about = own.iter().find(|one| Some(one.rank) == row.statement);
                all.note(row, about.copied());
            }
        }
        let sum: f64 = classes.values().sum();
        all.active = sum / seen.len().max(1) as f64;
        let share = |(class, active): (&str, f64)| (class.to_owned(), active / sum);
        all.waits = classes.into_iter().filter(|_| sum > 0.0).map(share).collect();
        all.waits.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.advice.sort_by(|a, b| {
            (b.first_in, b.trials).cmp(&(a.first_in, a.trials)).then(a.row.code.cmp(&b.row.code))
        });
        all
    }

    fn note(&mut self, row: &AdviceRow, about: Option<&StatementRow>) {
        let first = usize::from(row.rank == 1);
        let (row, statement) = (row.clone(), about.cloned());
        match self.advice.iter_mut().find(|one| one.row.code == row.code) {
            Some(one) => {
                let (trials, first_in) = (one.trials + 1, one.first_in + first);
                *one = AdviceSummary { trials, first_in, row, statement };
            }
            None => self.advice.push(AdviceSummary { trials: 1, first_in: first, row, statement }),
        }
    }
}
