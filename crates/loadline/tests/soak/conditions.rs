//! Jobs that connect, insert, read and leave, again and again, with the lab's own client: every
//! answer is right, and neither side's memory nor its descriptors grow.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use conditions::load::SERVICE;
use load::{Caller, Op, Part, Speaks, Workload};
use wire::Address;

use crate::served::Served;

/// Jobs at a time, and what each waits between two: a disk is filled more slowly then.
const JOBS: usize = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// Small, so that most of an hour's objects are in segments; and sealed all the time.
const WORKLOAD: &str = "folders = 10\nchannels = 10\nintervals = 20\nfields = 10\nbulk = 5\n";
const SEAL_AFTER: &str = "128KiB";

/// What a side may grow by from the first tenth of the time to the last one: caches that fill, and
/// of the server what it keeps of each change (crates/conditions/README.md) and of each segment.
const MAX_GROWN_BYTES: u64 = 24 << 20;
const BYTES_A_CHANGE: u64 = 24;
const MAX_GROWN_DESCRIPTORS: u64 = 16;

/// What a process holds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Memory that is no file's.
    bytes: u64,
    descriptors: u64,
}

impl Held {
    fn by(process: u32) -> Self {
        let folder = format!("/proc/{process}");
        let status = std::fs::read_to_string(format!("{folder}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("memory");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        let descriptors = std::fs::read_dir(format!("{folder}/fd")).expect("descriptors").count();
        Self { bytes: kib * 1024, descriptors: descriptors as u64 }
    }

    fn or_more(self, other: Self) -> Self {
        let (bytes, descriptors) = (self.bytes, self.descriptors);
        Self { bytes: bytes.max(other.bytes), descriptors: descriptors.max(other.descriptors) }
    }
}

fn serve(data: &Path) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "conditions", "--listen", "127.0.0.1:0", "--seal-after", SEAL_AFTER]);
    command.arg("--data").arg(data).stdin(Stdio::null());
    Served::spawn(command)
}

fn workload() -> Arc<dyn Workload> {
    let table = WORKLOAD.parse().expect("TOML");
    let part = Part { service: SERVICE.name, table: &table, folder: "".as_ref(), seed: 1 };
    let workload = (SERVICE.read)(&part).expect("a workload");
    workload.begin(&[0])
}

/// One job: it connects anew, reads, inserts, and finds what it has inserted. Returns its changes.
fn job(slot: &mut dyn Caller, workload: &dyn Workload, what: u64) -> u64 {
    for name in ["job", "insert", "insert-bulk", "find", "read-folders"] {
        let operation = workload.operations().iter().position(|one| one.name == name);
        let operation = operation.expect("an operation");
        let outcome = slot.call(Op { operation, what }).expect("an answer");
        let bad = (outcome.wrong, outcome.refused, outcome.misses);
        assert_eq!(bad, (0, 0, 0), "{name}: {outcome:?}");
    }
    2
}

/// Runs jobs for this time, and looks at the server meanwhile; at this process, too, if this
/// `is_alone` in it: other tests have memory and descriptors of their own.
pub(crate) fn run(time: Duration, is_alone: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let served = serve(&folder.path().join("data"));
    let at = Address::Internet(served.address().parse().expect("an address"));
    let (workload, speaks) = (workload(), Speaks::plainly(&SERVICE.dialects[0]));
    let slot = || workload.clone().caller(&speaks, &at).expect("a client");
    let mut first = slot();
    for part in 0..workload.preparation().parts {
        first.prepare(part).expect("prepared");
    }
    let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    let sides = [("server", served.child.id()), ("client", std::process::id())];
    let sides = &sides[..1 + usize::from(is_alone)];
    let mut most = [[Held::default(); 10]; 2];
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                let mut slot = slot();
                for what in 0.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    changes.fetch_add(job(&mut *slot, &*workload, what), Relaxed);
                    std::thread::sleep(PAUSE);
                }
            });
        }
        let start = Instant::now();
        let mut shown = 0;
        // From the first look on, however late this thread comes to it.
        for (&(_, process), most) in sides.iter().zip(&mut most) {
            most[0] = Held::by(process);
        }
        while start.elapsed() < time {
            let tenth = (10.0 * start.elapsed().as_secs_f64() / time.as_secs_f64()) as usize;
            for ((_, process), most) in sides.iter().zip(&mut most) {
                let held = &mut most[tenth.min(9)];
                *held = held.or_more(Held::by(*process));
            }
            if tenth > shown {
                shown = tenth;
                let made = changes.load(Relaxed);
                println!("{tenth}/10: {made} changes, {:?}", most.map(|side| side[tenth - 1]));
            }
            std::thread::sleep((time / 100).min(Duration::from_secs(1)));
        }
        stop.store(true, Relaxed);
    });
    let made = changes.load(Relaxed);
    assert!(made > 0, "no job came to its end");
    for ((side, _), most) in sides.iter().zip(most) {
        let (first, last) = (most[0], most[9]);
        println!("{side}: {first:?}, then {last:?}, after {made} changes");
        let bytes = first.bytes + MAX_GROWN_BYTES + BYTES_A_CHANGE * made;
        assert!(last.bytes <= bytes, "{side}: {first:?} has become {last:?}");
        let descriptors = first.descriptors + MAX_GROWN_DESCRIPTORS;
        assert!(last.descriptors <= descriptors, "{side}: {first:?} has become {last:?}");
    }
    assert!(served.stop(), "it ends in order");
}
