//! Whether a slice was disturbed, and by what: pure rules over two marks, one row each, with the
//! limit and its reason.

use std::collections::BTreeSet;

use ledger::{Cause, CauseKind, MAX_PROGRAMS, Program};

use crate::observe::census::OtherPrograms;
use crate::observe::mark::{CoreMark, Mark};

/// The kernel prints idle and stolen time in ticks of this length.
const TICK_NS: u64 = 10_000_000;

/// How the kernel's threads for disks are called where programs are named.
const DISK_WORKERS: &str = "kworker";

/// The least part of other programs' CPU time that is worth a name.
const NAMED_PART: f64 = 0.1;

/// The run's own CPU time, which is not foreign.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCpu<'a> {
    /// CPU time of the target in the slice; `None`, which is unseen, leaves other programs'
    /// CPU time unseen as well: what is known is the sum of both.
    pub server_ns: Option<u64>,
    /// CPU time of load that runs in processes of its own, beside the lab's.
    pub clients_ns: u64,
    /// Whether the target wrote so much of what disks were given that the work of the kernel's
    /// threads for disks is its own.
    pub is_writing: bool,
    /// The sides that may wait for a core; empty leaves that rule out.
    pub waits: &'a [Wait<'a>],
}

/// How long one side's threads were ready to run in the slice and had no core.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// The target's name; `None` is the generator.
    pub target: Option<&'a str>,
    /// Its thread that waited most: the sum over all threads grows with their number alone.
    pub waited_ns: u64,
    /// The number of its runnable threads.
    pub runnable: usize,
    /// The cores that they may use. With more runnable threads than cores, those of a side that
    /// shares them too, the run waits for itself.
    pub cores: &'a [usize],
}

/// What lay between two marks. `None` is unseen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// From one mark to the other.
    pub length_ns: u64,
    /// The time of all the run's cores together.
    pub core_time_ns: u64,
    /// CPU time on the run's cores that belongs to neither target, load, lab nor to what disks
    /// cost the kernel for the target.
    pub foreign_ns: Option<u64>,
    /// CPU time of the kernel's threads for disks, where that is the target's work: no part of
    /// the others'.
    pub disk_work_ns: u64,
    /// The same and the target's together, where the target's is unseen.
    pub unassigned_ns: Option<u64>,
    /// Whether that is known from clock ticks only.
    pub coarse: bool,
    /// Whose it is: read only where it disturbs.
    pub others: Option<OtherPrograms>,
    /// The most that the hypervisor kept of one core.
    pub most_stolen_ns: Option<u64>,
    /// The longest pause of the host.
    pub longest_pause_ns: Option<u64>,
    /// Pauses over a millisecond, together.
    pub lost_ns: Option<u64>,
    /// Pages swapped in and out.
    pub swapped_pages: Option<u64>,
    /// The longest that a thread of a target, or else of the generator, waited for a core and not
    /// for the run itself.
    pub most_waited: Option<(Option<String>, u64)>,
    /// Periods of the control group's CPU quota, and those in which it was used up.
    pub quota_periods: Option<[u64; 2]>,
}

/// A rule: how much is too much.
#[derive(Debug)]
pub struct Rule {
    /// What it is about.
    pub kind: CauseKind,
    /// What is still well, in the kind's unit.
    pub limit: f64,
    /// Why that is the limit.
    pub why: &'static str,
    /// How much there was of it; `None` is unseen, or counts for another kind.
    amount: fn(&Disturbance) -> Option<f64>,
}

/// Every rule.
pub static RULES: &[Rule] = &[
    Rule {
        kind: CauseKind::Foreign,
        limit: FOREIGN,
        why: "of the cores' time: the differences that matter are of this size, and a quiet host \
              stays far below",
        amount: |seen| seen.foreign_share().filter(|_| !seen.coarse),
    },
    Rule {
        kind: CauseKind::ForeignTicks,
        limit: 0.10,
        why: "of the cores' time: without the scheduler's sums, interrupts and waking up count as \
              foreign, which is several percent under load",
        amount: |seen| seen.foreign_share().filter(|_| seen.coarse),
    },
    Rule {
        kind: CauseKind::Steal,
        limit: 0.01,
        why: "of one core's time, and two ticks at least: one tick may be old time that has just \
              added up, of two one was surely lost in this slice",
        amount: |seen| {
            let stolen_ns = seen.most_stolen_ns.filter(|ns| *ns >= 2 * TICK_NS)?;
            Some(seen.share(stolen_ns))
        },
    },
    Rule {
        kind: CauseKind::Pause,
        limit: 10e6,
        why: "nanoseconds: 2 % of a slice of half a second. A quiet virtual machine pauses for a \
              few tenths of a millisecond, and that is its floor, not a disturbance",
        amount: |seen| Some(seen.longest_pause_ns? as f64),
    },
    Rule {
        kind: CauseKind::Pauses,
        limit: 0.02,
        why: "of the time: as much as other programs may take",
        amount: |seen| Some(seen.share(seen.lost_ns?)),
    },
    Rule {
        kind: CauseKind::Swap,
        limit: 16.0,
        why: "pages: two clusters of the kernel's read-ahead, which any program that wakes up \
              may need, change nothing",
        amount: |seen| Some(seen.swapped_pages? as f64),
    },
    Rule {
        kind: CauseKind::Wait { target: None },
        limit: 0.05,
        why: "of the time, by one thread, where there is a core for each runnable thread of the \
              run: measured, quiet runs stay under 2 % and disturbed ones begin at 9 %",
        amount: |seen| {
            let (_, waited_ns) = seen.most_waited.as_ref()?;
            // What a quota has stopped waits, too.
            (seen.throttled_share() <= THROTTLED).then(|| seen.share(*waited_ns))
        },
    },
    Rule {
        kind: CauseKind::Quota,
        limit: THROTTLED,
        why: "of the quota's periods, as much as other programs may take: in each of them the \
              run's threads stand still to its end, mostly for tens of milliseconds",
        amount: |seen| Some(seen.throttled_share()),
    },
    Rule {
        kind: CauseKind::Unassigned,
        limit: FOREIGN,
        why: "of the cores' time, beyond two ticks: the target's processes are unknown, so the \
              program that used most may be the target, and all the others are not",
        amount: |seen| {
            seen.least_foreign_share().filter(|share| *share > FOREIGN)?;
            seen.share_of_cores(seen.unassigned_ns?)
        },
    },
];

/// The limit of the rule on other programs' CPU time.
const FOREIGN: f64 = 0.02;

/// The limit of the rule on CPU quotas.
const THROTTLED: f64 = 0.02;

impl Disturbance {
    /// What lay between two marks, of which `after` is the next one after `before`. `cpus` are the
    /// run's cores; empty means all.
    pub fn measure(before: &Mark, after: &Mark, own: &OwnCpu<'_>, cpus: &[usize]) -> Self {
        let length_ns = after.at.saturating_sub(before.at);
        let of_run = |core: &CoreMark| cpus.is_empty() || cpus.contains(&core.cpu);
        let cores: Vec<Core> = after
            .cores
            .iter()
            .filter(|core| of_run(core))
            .filter_map(|after| {
                let before = before.cores.iter().find(|core| core.cpu == after.cpu)?;
                Some(Core::between(before, after, length_ns))
            })
            .collect();
        let since =
            |value: fn(&Mark) -> Option<u64>| Some(value(after)?.saturating_sub(value(before)?));
        let lab_ns = after.lab_ns.saturating_sub(before.lab_ns);
        let own_ns = own.server_ns.unwrap_or(0) + own.clients_ns + lab_ns;
        let disk_work_ns = if own.is_writing { disk_work(before, after, cpus) } else { 0 };
        let core_time_ns = length_ns * cores.len() as u64;
        let (not_own_ns, coarse) = foreign(&cores, core_time_ns, own_ns + disk_work_ns);
        Self {
            length_ns,
            core_time_ns,
            foreign_ns: not_own_ns.filter(|_| own.server_ns.is_some()),
            disk_work_ns,
            unassigned_ns: not_own_ns.filter(|_| own.server_ns.is_none()),
            coarse,
            most_stolen_ns: cores.iter().map(|core| core.stolen_ns).max(),
            longest_pause_ns: after.pauses.map(|pauses| pauses.longest_ns),
            lost_ns: since(|mark| mark.pauses.map(|pauses| pauses.lost_ns)),
            swapped_pages: since(|mark| mark.swapped_pages),
            // A wait is booked as a whole when it ends: what exceeds the slice was before it.
            most_waited: most_waited(own.waits).map(|(side, ns)| (side, ns.min(length_ns))),
            others: None,
            quota_periods: quota_periods(before, after),
        }
    }

    /// Whether other programs' CPU time passes its limit, so that their names are worth a reading.
    pub fn wants_names(&self) -> bool {
        let used_ns = self.foreign_ns.or(self.unassigned_ns);
        used_ns.and_then(|ns| self.share_of_cores(ns)).is_some_and(|share| share > FOREIGN)
    }

    /// The part of the quota's periods in which it was used up.
    fn throttled_share(&self) -> f64 {
        let [periods, throttled] = self.quota_periods.unwrap_or_default();
        throttled as f64 / periods.max(1) as f64
    }

    /// The other programs that are worth a name; empty where they are unseen.
    pub fn programs(&self) -> Vec<Program> {
        let foreign_ns = self.foreign_ns.or(self.unassigned_ns);
        let (Some(others), Some(foreign_ns)) = (&self.others, foreign_ns) else {
            return Vec::new();
        };
        let foreign = self.share(foreign_ns);
        let own_disk_work = self.share(self.disk_work_ns);
        let of_others = |(name, cores): &(String, f64)| match &name[..] {
            DISK_WORKERS => (name.clone(), (cores - own_disk_work).max(0.0)),
            _ => (name.clone(), *cores),
        };
        let others_cores: Vec<(String, f64)> = others.cores.iter().map(of_others).collect();
        let seen: f64 = others_cores.iter().map(|(_, cores)| cores).sum();
        // What ended is booked when its parent has waited for it, whenever it ran: all together
        // can't have used more than the cores say.
        let scale = if seen > foreign && !others.also_elsewhere { foreign / seen } else { 1.0 };
        let scaled = others_cores.into_iter().map(|(name, cores)| (name, cores * scale));
        let is_worth = |cores: f64| cores >= NAMED_PART * foreign;
        // One more stands for what no reading saw.
        let named = scaled.filter(|(_, cores)| is_worth(*cores)).take(MAX_PROGRAMS - 1);
        // What ran on cores that are none of the run's can't be told from what disturbed.
        let used = |cores: f64| Some(cores).filter(|_| !others.also_elsewhere);
        let named = named.map(|(name, cores)| Program { name: Some(name), cores: used(cores) });
        let rest = used(foreign - seen).filter(|rest| is_worth(*rest));
        named.chain(rest.map(|cores| Program { name: None, cores: Some(cores) })).collect()
    }

    /// Everything that passed its limit.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |rule: &Rule| {
            let amount = (rule.amount)(self).filter(|amount| *amount > rule.limit)?;
            let cause = Cause::new(rule.kind.clone(), amount);
            Some(match &rule.kind {
                CauseKind::Foreign | CauseKind::ForeignTicks | CauseKind::Unassigned => {
                    Cause { programs: self.programs(), ..cause }
                }
                CauseKind::Wait { .. } => {
                    Cause { kind: CauseKind::Wait { target: self.most_waited.clone()?.0 }, ..cause }
                }
                _ => cause,
            })
        };
        RULES.iter().filter_map(cause).collect()
    }

    /// A time as a share of that between the marks.
    fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.length_ns.max(1) as f64
    }

    /// The part of the cores' time that other programs used.
    pub fn foreign_share(&self) -> Option<f64> {
        self.share_of_cores(self.foreign_ns?)
    }

    /// The part that they used at least, beside a target that is unseen; `None` where nothing is
    /// known of it.
    fn least_foreign_share(&self) -> Option<f64> {
        let others = self.others.as_ref().filter(|others| !others.also_elsewhere)?;
        let ns = (others.beside_a_target() * self.length_ns as f64) as u64;
        let ns = ns.min(self.unassigned_ns?).saturating_sub(2 * TICK_NS);
        self.share_of_cores(ns)
    }

    fn share_of_cores(&self, ns: u64) -> Option<f64> {
        (self.core_time_ns > 0).then(|| ns as f64 / self.core_time_ns as f64)
    }
}

/// One core between two marks.
struct Core {
    ran_ns: Option<u64>,
    /// What is not idle; idle time is exact but printed in ticks, so this is to a tick.
    not_idle_ns: u64,
    stolen_ns: u64,
}

impl Core {
    fn between(before: &CoreMark, after: &CoreMark, length_ns: u64) -> Self {
        let ran_ns = after.ran_ns.zip(before.ran_ns);
        let idle_ns = after.idle_ns.saturating_sub(before.idle_ns);
        Self {
            ran_ns: ran_ns.map(|(after, before)| after.saturating_sub(before)),
            not_idle_ns: length_ns.saturating_sub(idle_ns),
            stolen_ns: after.steal_ns.saturating_sub(before.steal_ns),
        }
    }
}

/// CPU time on these cores that isn't ours, and whether it is only known from ticks.
fn foreign(cores: &[Core], core_time_ns: u64, own_ns: u64) -> (Option<u64>, bool) {
    let ran: Option<u64> = cores.iter().map(|core| core.ran_ns).sum();
    let not_idle_ns: u64 = cores.iter().map(|core| core.not_idle_ns).sum();
    let ticks_ns = TICK_NS * cores.len() as u64;
    match ran {
        // A task that never slept may appear late and at once; a core can't have been busier than
        // it was not idle, nor for longer than the slice, which may be shorter than a tick.
        Some(ran_ns) => {
            let most_ns = (not_idle_ns + ticks_ns).min(core_time_ns);
            (Some(ran_ns.min(most_ns).saturating_sub(own_ns)), false)
        }
        None => (Some(not_idle_ns.saturating_sub(ticks_ns).saturating_sub(own_ns)), true),
    }
}

/// The side that waited most, of those that did not wait for the run itself.
fn most_waited(waits: &[Wait<'_>]) -> Option<(Option<String>, u64)> {
    let judged = waits.iter().filter(|wait| !waits_for_the_run(wait, waits));
    let most = judged.max_by_key(|wait| wait.waited_ns)?;
    Some((most.target.map(str::to_owned), most.waited_ns))
}

fn waits_for_the_run(wait: &Wait<'_>, waits: &[Wait<'_>]) -> bool {
    let shares = |other: &&Wait<'_>| other.cores.iter().any(|core| wait.cores.contains(core));
    let sharing = || waits.iter().filter(shares);
    let cores: BTreeSet<usize> = sharing().flat_map(|one| one.cores.iter().copied()).collect();
    sharing().fold(0, |sum: usize, one| sum.saturating_add(one.runnable)) > cores.len()
}

/// CPU time of the kernel's threads for disks on the run's cores; none where it is unseen.
fn disk_work(before: &Mark, after: &Mark, cpus: &[usize]) -> u64 {
    let Some((before_work, work)) = before.disk_work.as_ref().zip(after.disk_work.as_ref()) else {
        return 0;
    };
    let all: Vec<usize> = after.cores.iter().map(|core| core.cpu).collect();
    let cores = if cpus.is_empty() { &all[..] } else { cpus };
    work.since(before_work, cores, all.iter().all(|core| cores.contains(core)))
}

/// Growth between two marks. A quota that was set anew counts from zero.
fn quota_periods(before: &Mark, after: &Mark) -> Option<[u64; 2]> {
    let (before, after) = (before.quota_periods?, after.quota_periods?);
    Some(std::array::from_fn(|kind| after[kind].saturating_sub(before[kind])))
}

#[cfg(test)]
mod tests;
