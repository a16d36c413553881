//! What is said once a second of things that go on, when there is something to say.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::records::client::shared::SpotCheck;
use ::records::protocol::{Array, Bits};
use anyhow::bail;
use serde_json::{Value as Json, json};

/// Counts of one second.
#[derive(Debug)]
pub(crate) struct Report {
    /// What is counted: `updates`, `gets`, `puts`, `iterations`.
    what: &'static str,
    began: Instant,
    count: u64,
    elements: u64,
    bytes: u64,
    ends: Option<(String, String)>,
    changed: Bits,
    overrun: Bits,
    lost_by_client: u64,
    /// Whether all elements of arrays are compared.
    checks: bool,
    /// Arrays whose elements weren't alike, and of those in all reports so far.
    unlike: u64,
    unlike_before: u64,
    /// Arrays that were seen in shared memory.
    shared: u64,
}

impl Report {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            began: Instant::now(),
            count: 0,
            elements: 0,
            bytes: 0,
            ends: None,
            changed: Bits::new(),
            overrun: Bits::new(),
            lost_by_client: 0,
            checks: false,
            unlike: 0,
            unlike_before: 0,
            shared: 0,
        }
    }

    /// The same, which compares each element of arrays with the first.
    pub(crate) fn checking(self, checks: bool) -> Self {
        Self { checks, ..self }
    }

    /// Counts one, and what was seen of its array in shared memory.
    pub(crate) fn add_spot_check(&mut self, spots: &SpotCheck) {
        self.count += 1;
        self.shared += 1;
        self.elements += spots.elements;
        self.bytes += spots.bytes;
        let ends = spots.ends.as_ref();
        let is_unlike = spots.unlike > 0 || ends.is_some_and(|(first, last)| first != last);
        self.unlike += u64::from(self.checks && is_unlike);
        self.ends = ends.map(|(first, last)| (first.to_string(), last.to_string()));
    }

    /// Counts one, and the array that it was about.
    pub(crate) fn add(&mut self, array: Option<&Array>) {
        self.count += 1;
        let Some(array) = array else { return };
        self.elements += array.len() as u64;
        self.bytes += array.bytes().len() as u64;
        self.unlike += u64::from(self.checks && !are_alike(array));
        let last = array.len().checked_sub(1).and_then(|last| array.get(last));
        let ends = array.get(0).zip(last);
        self.ends = ends.map(|(first, last)| (first.to_string(), last.to_string()));
    }

    /// What an update said of itself.
    pub(crate) fn told(&mut self, changed: &Bits, overrun: &Bits) {
        self.changed.union(changed);
        self.overrun.union(overrun);
    }

    /// Updates that came and were thrown away, as newer ones came before anybody looked.
    pub(crate) fn lost(&mut self, count: u64) {
        self.lost_by_client += count;
    }

    /// The report, if a second has passed and there is something in it; and it starts again.
    pub(crate) fn due(&mut self) -> Option<Self> {
        if self.began.elapsed() < Duration::from_secs(1) {
            return None;
        }
        self.take()
    }

    /// The report of what has not been reported.
    pub(crate) fn take(&mut self) -> Option<Self> {
        let unlike_before = self.unlike_before + self.unlike;
        let next = Self { unlike_before, ..Self::new(self.what).checking(self.checks) };
        let done = std::mem::replace(self, next);
        (done.count > 0).then_some(done)
    }

    /// How a command ends that has made these reports: arrays that are not as they are checked to
    /// be are an error.
    pub(crate) fn outcome(&self, name: &str) -> anyhow::Result<ExitCode> {
        match self.unlike_before + self.unlike {
            0 => Ok(ExitCode::SUCCESS),
            torn => bail!("{name}: {torn} of the arrays had elements that differ"),
        }
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64().max(1e-9)
    }

    pub(crate) fn text(&self) -> String {
        let seconds = self.seconds();
        let rate = |count: u64, unit: &str| scaled(count as f64 / seconds, unit);
        let mut text = rate(self.count, &format!(" {}/s", self.what));
        if let Some((first, last)) = &self.ends {
            text.push_str(&format!("  first {first}  last {last}"));
        }
        if self.what == "updates" {
            let (changed, overrun) = (set(&self.changed), set(&self.overrun));
            text.push_str(&format!("  changed {changed}  overrun {overrun} by the server"));
            text.push_str(&format!(", {} by the client", self.lost_by_client));
        }
        if self.elements > 0 {
            text.push_str(&format!("  {}", rate(self.elements, " elements/s")));
            text.push_str(&format!("  {}", rate(self.bytes, "B/s")));
        }
        if self.shared > 0 {
            text.push_str("  in shared memory, seen at both ends and once a page");
        }
        if self.checks {
            text.push_str(&format!("  {} unlike", self.unlike));
        }
        text.push_str(&format!("  in {seconds:.3} s"));
        text
    }

    pub(crate) fn json(&self) -> Json {
        let seconds = self.seconds();
        let bits = |bits: &Bits| bits.iter().collect::<Vec<_>>();
        let mut object = json!({
            "schema": 1,
            "seconds": seconds,
            self.what: self.count,
            "elements": self.elements,
            "elements_per_s": self.elements as f64 / seconds,
            "bytes": self.bytes,
            "bytes_per_s": self.bytes as f64 / seconds,
        });
        if let Some((first, last)) = &self.ends {
            object["first"] = json!(first);
            object["last"] = json!(last);
        }
        if self.what == "updates" {
            object["changed"] = json!(bits(&self.changed));
            object["server_overrun"] = json!(bits(&self.overrun));
            object["client_overrun"] = json!(self.lost_by_client);
            object["shared"] = json!(self.shared);
        }
        if self.checks {
            object["unlike"] = json!(self.unlike);
        }
        object
    }
}

/// Whether all elements of an array are like its first.
fn are_alike(array: &Array) -> bool {
    let each = array.scalar().bytes().unwrap_or(1);
    let bytes = array.bytes();
    if each == 8 {
        let words = bytes.as_chunks::<8>().0;
        let Some(first) = words.first().map(|word| u64::from_ne_bytes(*word)) else { return true };
        // Without an early way out this becomes a straight run of vector code.
        return words.iter().fold(0, |all, word| all | (u64::from_ne_bytes(*word) ^ first)) == 0;
    }
    bytes.get(..each).is_none_or(|first| bytes.chunks_exact(each).all(|one| one == first))
}

fn set(bits: &Bits) -> String {
    let all: Vec<_> = bits.iter().map(|bit| bit.to_string()).collect();
    format!("{{{}}}", all.join(", "))
}

/// A number with its unit, in a scale in which it is short.
pub(crate) fn scaled(number: f64, unit: &str) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match scales.into_iter().find(|(scale, _)| number >= *scale) {
        Some((scale, letter)) => format!("{:.3} {letter}{unit}", number / scale),
        None => format!("{number:.3} {}", unit.trim_start()),
    }
}
