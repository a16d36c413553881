//! Another program at work: threads of this process that take the CPU by a schedule, which the
//! measured run knows nothing of. The same seed gives the same schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use judge::Random;
use rustix::thread::CpuSet;

/// What runs beside a check's suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing that is known of.
    Nothing,
    /// A program that takes a tenth of a core, in bursts of 50 ms.
    TenthOfACore,
    /// A program that takes half of a core, in bursts of 10 ms.
    HalfOfACore,
    /// A program that takes 80 % of a core in a quarter of the time, for 750 ms on average.
    Bursts,
    /// What takes 2 to 14 % of the suites' two cores before anyone else, as a hypervisor does.
    Steal,
}

/// Time to burn, and then to rest.
type Step = [Duration; 2];

/// One thread's schedule.
struct Schedule {
    /// The core that it takes before all others' threads, where the host allows that; `None` is
    /// whichever the kernel chooses, at the priority of everyone.
    core: Option<usize>,
    steps: Box<dyn Iterator<Item = Step> + Send>,
}

impl Beside {
    /// The schedules of its threads.
    fn schedules(self, seed: u64) -> Vec<Schedule> {
        let steps: Box<dyn Iterator<Item = Step> + Send> = match self {
            Beside::Nothing => return Vec::new(),
            Beside::TenthOfACore => Box::new(std::iter::repeat([ms(50), ms(450)])),
            Beside::HalfOfACore => Box::new(std::iter::repeat([ms(10), ms(10)])),
            Beside::Bursts => Box::new(bursts(seed)),
            Beside::Steal => {
                let of_core = |core| {
                    let steps = Box::new(stolen(seed << 1 | core as u64));
                    Schedule { core: Some(core), steps }
                };
                return [0, 1].map(of_core).into();
            }
        };
        vec![Schedule { core: None, steps }]
    }

    /// Begins to burn.
    pub(crate) fn start(self, seed: u64) -> Burner {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = self.schedules(seed).into_iter().map(|schedule| {
            let stopped = stop.clone();
            std::thread::spawn(move || burn(schedule, &stopped))
        });
        Burner { threads: threads.collect(), stop }
    }
}

fn burn(schedule: Schedule, stopped: &AtomicBool) {
    if let Some(core) = schedule.core {
        let mut set = CpuSet::new();
        set.set(core);
        // Without that core, or the right to the highest priority, it takes what it gets.
        let _ = rustix::thread::sched_setaffinity(None, &set);
        let _ = rustix::process::nice(-20);
    }
    for [busy, rest] in schedule.steps {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < busy {
            std::hint::spin_loop();
        }
        std::thread::sleep(rest);
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Quarters of a second, each in a burst or not: one begins with a probability of 1/9 and goes on
/// with 2/3.
fn bursts(seed: u64) -> impl Iterator<Item = Step> {
    static REST: [Step; 1] = [[Duration::ZERO, ms(250)]];
    static BURST: [Step; 10] = [[ms(20), ms(5)]; 10];
    let mut random = Random::new(seed);
    let mut in_burst = false;
    std::iter::repeat_with(move || {
        in_burst = random.uniform() < if in_burst { 2.0 / 3.0 } else { 1.0 / 9.0 };
        if in_burst { &BURST[..] } else { &REST[..] }
    })
    .flatten()
    .copied()
}

/// Of each quarter of a second 2 to 14 %, at every twentieth of a second.
fn stolen(seed: u64) -> impl Iterator<Item = Step> {
    const PERIOD: Duration = ms(50);
    let mut random = Random::new(seed);
    std::iter::repeat_with(move || {
        let busy = PERIOD.mul_f64(0.02 + 0.12 * random.uniform());
        [[busy, PERIOD - busy]; 5]
    })
    .flatten()
}

/// Threads that burn until this is dropped.
pub(crate) struct Burner {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the time in which a thread burns.
    fn taken(steps: impl Iterator<Item = Step>) -> f64 {
        let [busy, rest] = steps
            .take(20_000)
            .fold([Duration::ZERO; 2], |[busy, rest], step| [busy + step[0], rest + step[1]]);
        busy.as_secs_f64() / (busy + rest).as_secs_f64()
    }

    #[test]
    fn bursts_take_what_they_say_and_are_the_same_for_a_seed() {
        let share = taken(bursts(1));
        assert!((share - 0.25 * 0.8).abs() < 0.02, "{share}");
        assert!(bursts(7).take(100).eq(bursts(7).take(100)));
        assert!(!bursts(7).take(100).eq(bursts(8).take(100)));
    }

    #[test]
    fn what_is_stolen_is_another_share_of_each_core() {
        let [first, second] =
            [stolen(2), stolen(3)].map(|steps| steps.take(100).collect::<Vec<_>>());
        assert_ne!(first, second);
        let share = taken(stolen(2));
        assert!((share - 0.08).abs() < 0.01, "{share}");
        let cores = |beside: Beside| {
            beside.schedules(1).iter().map(|schedule| schedule.core).collect::<Vec<_>>()
        };
        assert_eq!(cores(Beside::Steal), [Some(0), Some(1)]);
        assert_eq!(cores(Beside::Bursts), [None]);
        assert!(cores(Beside::Nothing).is_empty());
    }
}
