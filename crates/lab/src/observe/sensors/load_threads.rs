//! How long the threads of load in this process waited for a core: beside them run the lab's own,
//! whose waits delay no request.

use super::super::listing::Listing;
use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, nth_number};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "load_threads",
    doc: "how long this program's threads of load waited for a core, together",
    source: "/proc/self/task/TID/schedstat",
    unseen: "with more than 64 threads of load",
    every: 1,
    series: &[Line::share("waiting", "cores")],
    of: Reader::Host(open),
};

/// The most threads that are followed.
const THREADS_LIMIT: usize = 64;

fn open(_: &Scope) -> Box<dyn Probe> {
    let (listed, threads, ended_ns) = (Vec::new(), Vec::new(), 0);
    Box::new(LoadThreads { listing: Listing::of_threads(), listed, threads, ended_ns })
}

struct LoadThreads {
    listing: Listing,
    listed: Vec<u32>,
    threads: Vec<Thread>,
    /// The waits of those that have ended.
    ended_ns: u64,
}

struct Thread {
    id: u32,
    schedstat: Source,
    waited_ns: u64,
}

impl Probe for LoadThreads {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        if !self.listing.read(&mut self.listed) {
            return;
        }
        let Self { listed, threads, ended_ns, .. } = self;
        threads.retain(|thread| {
            let lives = listed.binary_search(&thread.id).is_ok();
            *ended_ns += if lives { 0 } else { thread.waited_ns };
            lives
        });
        for id in listed.iter().copied() {
            // A thread has its name only once it runs, so the others are asked each time.
            let is_known = threads.iter().any(|thread| thread.id == id);
            if !is_known && threads.len() <= THREADS_LIMIT && is_load(id, scratch) {
                let schedstat = Source::open(&format!("/proc/self/task/{id}/schedstat"));
                threads.push(Thread { id, schedstat, waited_ns: 0 });
            }
        }
        for thread in threads.iter_mut() {
            let line = thread.schedstat.read_line(scratch);
            let waited_ns = line.and_then(|line| nth_number(line, 1));
            thread.waited_ns = waited_ns.unwrap_or(thread.waited_ns);
        }
        let living: u64 = threads.iter().map(|thread| thread.waited_ns).sum();
        if let [reading] = readings {
            *reading = (threads.len() <= THREADS_LIMIT).then_some(*ended_ns + living);
        }
    }
}

fn is_load(id: u32, scratch: &mut Scratch) -> bool {
    let name = Source::open(&format!("/proc/self/task/{id}/comm"));
    name.read_line(scratch).is_some_and(|name| name == b"load\n")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread::Builder;

    use super::*;

    #[test]
    fn only_threads_of_load_count_and_those_that_ended_go_on_counting() {
        let mut probe = LoadThreads {
            listing: Listing::of_threads(),
            listed: Vec::new(),
            threads: Vec::new(),
            ended_ns: 0,
        };
        let (mut scratch, mut readings) = (Scratch::new(), [None]);
        let (end, over) = channel::<()>();
        let (begun, begins) = channel();
        let run = move || {
            begun.send(()).unwrap();
            let _ = over.recv();
        };
        let load = Builder::new().name("load".into()).spawn(run).unwrap();
        begins.recv().unwrap();
        probe.read(&mut scratch, &mut readings);
        assert_eq!(probe.threads.len(), 1, "the tests' own threads are none");
        probe.threads[0].schedstat = Source::open("/nowhere");
        probe.threads[0].waited_ns = 7;
        probe.read(&mut scratch, &mut readings);
        assert_eq!(readings, [Some(7)]);
        drop(end);
        load.join().unwrap();
        // A thread that was joined may be listed for a moment more.
        while !probe.threads.is_empty() {
            probe.read(&mut scratch, &mut readings);
        }
        assert_eq!((readings, probe.ended_ns), ([Some(7)], 7));
    }
}
