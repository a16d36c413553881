//! A suite's plan turned into one comparison of two targets. Control plane.

use base::units::Span;

use super::types::{Plan, Rounds, Sequence, Target};

/// How a comparison is to be made; what isn't said follows from the suite and the budget.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Measured time that may be spent, over all points and both targets.
    pub budget: Span,
    /// Measured time of each target in a round; `None` is chosen to fit.
    pub measure: Option<Span>,
    /// The probability of a wrong better or worse.
    pub error: f64,
    /// How tight the interval has to be before it may stop; `None` stops once there is a verdict.
    pub until: Option<f64>,
    /// What differs between the targets on purpose, as the user calls it.
    pub factor: Option<String>,
}

/// Rounds that a budget should hold, if the suite's own rounds are too long for so many: fewer
/// would leave the interval to chance, more would leave a round too short.
const ROUNDS_WANTED: u64 = 24;

/// No round is made shorter than this to fit more of them.
const MIN_MEASURE: Span = Span { ns: 250_000_000 };

/// A round has at least so many slices of each target, so that both see the same weather.
const MIN_SLICES: u64 = 4;

/// No slice is made shorter than this.
const MIN_SLICE: Span = Span { ns: 50_000_000 };

impl Plan {
    /// The plan with two of its targets only, `a` first; the same name twice measures two
    /// instances of it, named `NAME.a` and `NAME.b`.
    ///
    /// # Errors
    /// When there is no such target, with the names there are.
    pub fn keep_targets(&mut self, a: &str, b: &str) -> Result<(), String> {
        for point in &mut self.points {
            let find = |name: &str| {
                let found = point.targets.iter().find(|target| target.name == name);
                found.cloned().ok_or_else(|| {
                    let known: Vec<&str> =
                        point.targets.iter().map(|target| &target.name[..]).collect();
                    format!("there is no target \"{name}\"; the suite has {}", known.join(", "))
                })
            };
            let (mut first, mut second) = (find(a)?, find(b)?);
            if a == b {
                first.name.push_str(".a");
                second.name.push_str(".b");
            }
            point.targets = vec![first, second];
        }
        self.none_skipped()
    }

    /// The plan with the variants that `vary` makes of one of its targets, in their order.
    ///
    /// # Errors
    /// As [`Plan::keep_targets`], and what `vary` says.
    pub fn vary_target(
        &mut self,
        name: Option<&str>,
        vary: &dyn Fn(&Target) -> Result<Vec<Target>, String>,
    ) -> Result<(), String> {
        let first = self.targets().first().map(|target| target.name.clone());
        let name = name.map(str::to_owned).or(first).unwrap_or_default();
        self.keep_targets(&name, &name)?;
        for point in &mut self.points {
            let mut target = point.targets.remove(0);
            target.name = name.clone();
            point.targets = vary(&target)?;
        }
        self.none_skipped()
    }

    fn none_skipped(&self) -> Result<(), String> {
        let skipped = |target: &Target| {
            let why = target.skipped.as_ref()?;
            Some(format!("{} can't be measured: {why}", target.name))
        };
        self.targets().iter().find_map(skipped).map_or(Ok(()), Err)
    }

    /// Sets rounds so that the budget holds as many as are useful.
    ///
    /// # Errors
    /// When the budget is too short for the least number of rounds, with what would do.
    pub fn contest(&mut self, contest: &Contest) -> Result<(), String> {
        let shares = self.points.len().max(1) as u64 * self.targets().len().max(1) as u64;
        let each = contest.budget.ns / shares;
        let rounds = &mut self.rounds;
        let fitting = (each / ROUNDS_WANTED).max(MIN_MEASURE.ns);
        let measure = contest.measure.map_or(rounds.measure.ns.min(fitting), |measure| measure.ns);
        let most = u32::try_from(each / measure.max(1)).unwrap_or(u32::MAX);
        let least = judge::MIN_ROUNDS as u32;
        if most < least {
            let needed = u64::from(least).saturating_mul(measure).saturating_mul(shares);
            let needed = Span { ns: needed }.to_string();
            let needed = needed.replace(' ', "");
            return Err(format!(
                "{} of measured time hold {most} rounds of {shares} × {}, and under {least} \
                 nothing can be told: --budget {needed} would do, or a shorter --measure",
                contest.budget,
                Span { ns: measure }
            ));
        }
        let slice = rounds.slice.map(|slice| {
            let fitting = (measure / MIN_SLICES).max(MIN_SLICE.ns);
            Span { ns: slice.ns.min(fitting).min(measure) }
        });
        *rounds = Rounds {
            measure: Span { ns: measure },
            slice,
            at_least: least,
            at_most: most,
            until: None,
            budget: None,
            sequence: Some(Sequence {
                error: contest.error,
                until: contest.until,
                factor: contest.factor.clone(),
                least_shown: None,
            }),
            ..rounds.clone()
        };
        Ok(())
    }
}
