//! What passes over a connection: counted, and, where that is asked for, noted one by one.

/// What has passed over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Writes, and their bytes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads that brought something.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Waits for room, or for bytes, by a system call of their own.
    pub waits: u64,
}

/// A write or a read, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This much was written.
    Write(usize),
    /// This much came.
    Read(usize),
}

/// The most steps that are noted.
const MOST_STEPS: usize = 1_024;

/// Counts.
#[derive(Debug, Default)]
pub(in crate::client) struct Meter {
    pub(in crate::client) traffic: Traffic,
    /// What is noted; `None` where it isn't.
    steps: Option<Vec<Step>>,
}

impl Meter {
    pub(in crate::client) fn has_written(&mut self, bytes: usize) {
        self.traffic.writes += 1;
        self.traffic.written_bytes += bytes as u64;
        self.note(Step::Write(bytes));
    }

    pub(in crate::client) fn has_read(&mut self, bytes: usize) {
        self.traffic.reads += 1;
        self.traffic.read_bytes += bytes as u64;
        self.note(Step::Read(bytes));
    }

    fn note(&mut self, step: Step) {
        if let Some(steps) = self.steps.as_mut().filter(|steps| steps.len() < MOST_STEPS) {
            steps.push(step);
        }
    }

    /// Notes what passes from now on.
    pub(in crate::client) fn note_steps(&mut self) {
        self.steps = Some(Vec::new());
    }

    /// What has passed since, and no more.
    pub(in crate::client) fn take_steps(&mut self) -> Vec<Step> {
        self.steps.take().unwrap_or_default()
    }
}
