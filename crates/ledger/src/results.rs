//! What came of every run, counted by the database: enough for a sentence about each in a list,
//! where reading whole runs would take too long.

use std::collections::HashMap;

use crate::error::LedgerError;
use crate::ids::RunId;
use crate::open::Ledger;
use crate::word_columns::RequirementOutcome;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunResult {
    /// Its verdicts by the primary metric, those of the first target first; of a ladder those of
    /// the last rung.
    pub verdicts: Vec<VerdictCount>,
    /// The requirements that held.
    pub held: u64,
    /// Those that were broken.
    pub broken: u64,
    /// Those that can't be told.
    pub unclear: u64,
    /// The highest load that held and the lowest that broke, of a search.
    pub loads: Option<Loads>,
    /// The primary metric of the first target at each point, where it has trials that are not
    /// invalid: its geometric mean over them.
    pub figures: Vec<f64>,
    /// The first target.
    pub target: String,
    /// The primary metric.
    pub metric: String,
}

/// The verdicts of one kind between two targets, over the points of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictCount {
    /// The target that they are on.
    pub a: String,
    /// The other one.
    pub b: String,
    /// `better`, `worse`, `same`, `likely_better`, `likely_worse` or `cant_tell`.
    pub verdict: String,
    /// Their number.
    pub points: u64,
    /// The least and the greatest ratio a ÷ b among them, where there is one.
    pub ratios: Option<(f64, f64)>,
}

/// What a search for the highest load found.
#[derive(Debug, Clone, PartialEq)]
pub struct Loads {
    /// The key of the load.
    pub key: String,
    /// The highest load that held.
    pub held: Option<f64>,
    /// The lowest one that broke.
    pub broken: Option<f64>,
}

impl Ledger {
    /// What came of every run that has a target.
    ///
    /// Fails when the ledger can't be read.
    pub fn results(&self) -> Result<HashMap<RunId, RunResult>, LedgerError> {
        let mut all: HashMap<RunId, RunResult> = HashMap::new();
        let firsts = "SELECT run.id, run.primary_metric, target.name FROM run
            JOIN target ON target.run_id = run.id AND target.ordinal = 0";
        for (run, metric, target) in self.rows(firsts, [], |row| row.try_into())? {
            all.insert(run, RunResult { metric, target, ..RunResult::default() });
        }
        let verdicts = "SELECT verdict.run_id, a.name, b.name,
                CASE WHEN verdict = 'cant_tell' AND likely IS NOT NULL
                    THEN 'likely_' || likely ELSE verdict END AS word,
                count(*), min(coalesce(likely_ratio, ratio)), max(coalesce(likely_ratio, ratio))
            FROM verdict JOIN target a ON a.id = a_id JOIN target b ON b.id = b_id
            WHERE is_primary GROUP BY verdict.run_id, a_id, b_id, word
            ORDER BY verdict.run_id, a.ordinal DESC, b.ordinal, word";
        let found = self.rows(verdicts, [], |row| {
            let ratios: (Option<f64>, Option<f64>) = (row.get(5)?, row.get(6)?);
            let (a, b, verdict, points) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            let ratios = ratios.0.zip(ratios.1);
            Ok((row.get(0)?, VerdictCount { a, b, verdict, points, ratios }))
        })?;
        for (run, one) in found {
            let Some(result) = all.get_mut(&run) else { continue };
            if result.verdicts.first().is_none_or(|first| first.a == one.a) {
                result.verdicts.push(one);
            }
        }
        let required = "SELECT run_id, outcome, count(*) FROM requirement GROUP BY run_id, outcome";
        let required: Vec<(RunId, RequirementOutcome, u64)> =
            self.rows(required, [], |row| row.try_into())?;
        for (run, outcome, number) in required {
            let Some(result) = all.get_mut(&run) else { continue };
            match outcome {
                RequirementOutcome::Held => result.held = number,
                RequirementOutcome::Broken => result.broken = number,
                RequirementOutcome::CantTell => result.unclear = number,
            }
        }
        let loads = "SELECT search.run_id, search.key,
                max(CASE WHEN outcome = 'held' THEN load END),
                min(CASE WHEN outcome = 'broken' THEN load END)
            FROM search JOIN point ON point.run_id = search.run_id
            JOIN probe ON probe.point_id = point.id GROUP BY search.run_id";
        for (run, key, held, broken) in self.rows(loads, [], |row| row.try_into())? {
            if let Some(result) = all.get_mut(&run) {
                result.loads = Some(Loads { key, held, broken });
            }
        }
        self.add_figures(&mut all)?;
        Ok(all)
    }

    /// The figures of runs without a verdict.
    fn add_figures(&self, all: &mut HashMap<RunId, RunResult>) -> Result<(), LedgerError> {
        let figures = "SELECT run.id, round.point_id, figure.value FROM run
            JOIN round ON round.run_id = run.id
            JOIN trial ON trial.round_id = round.id AND trial.validity <> 'invalid'
            JOIN target ON target.id = trial.target_id AND target.ordinal = 0
            JOIN figure ON figure.trial_id = trial.id AND figure.name = run.primary_metric
            WHERE figure.value > 0 AND NOT EXISTS
                (SELECT 1 FROM verdict WHERE verdict.run_id = run.id)
            ORDER BY run.id, round.point_id";
        let rows: Vec<(RunId, i64, f64)> = self.rows(figures, [], |row| row.try_into())?;
        for point in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let logs = point.iter().map(|(_, _, value)| value.ln()).sum::<f64>();
            if let Some(result) = all.get_mut(&point[0].0) {
                result.figures.push((logs / point.len() as f64).exp());
            }
        }
        Ok(())
    }
}
