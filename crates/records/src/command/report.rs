//! Reports once a second of what goes on: counts, the figures made of them, and their text and
//! JSON, which the client and the server share.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Value as Json, json};

use crate::client::shared::SpotCheck;
use crate::protocol::{Array, Bits};

/// Counts of what has not been reported yet.
#[derive(Debug)]
pub(crate) struct Tally {
    began: Instant,
    /// Whether all elements of arrays are compared.
    checks: bool,
    /// Arrays whose elements differed, in all reports so far.
    unlike_before: u64,
    report: Report,
}

/// The figures of a second or so.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What is counted: `updates`, `gets`, `puts`, `iterations`.
    pub(crate) what: &'static str,
    pub(crate) seconds: f64,
    pub(crate) count: u64,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
    /// The first and the last element of the last array.
    pub(crate) ends: Option<(String, String)>,
    pub(crate) changed: Bits,
    pub(crate) overrun: Bits,
    /// Updates that were dropped here, because newer ones came before they were used.
    pub(crate) lost: u64,
    /// Arrays whose elements differ, where they were compared.
    pub(crate) unlike: Option<u64>,
    /// Arrays that were seen in shared memory.
    pub(crate) shared: u64,
}

impl Tally {
    pub(crate) fn new(what: &'static str) -> Self {
        let report = Report { what, ..Report::default() };
        Self { began: Instant::now(), checks: false, unlike_before: 0, report }
    }

    /// The same, which compares each element of arrays with the first.
    pub(crate) fn checking(self, checks: bool) -> Self {
        let unlike = checks.then_some(0);
        Self { checks, report: Report { unlike, ..self.report }, ..self }
    }

    /// Counts one, and what was seen of its array in shared memory.
    pub(crate) fn add_spot_check(&mut self, spots: &SpotCheck) {
        let report = &mut self.report;
        report.count += 1;
        report.shared += 1;
        report.elements += spots.elements;
        report.bytes += spots.bytes;
        let ends = spots.ends.as_ref();
        let is_unlike = spots.unlike > 0 || ends.is_some_and(|(first, last)| first != last);
        report.unlike = report.unlike.map(|count| count + u64::from(is_unlike));
        report.ends = ends.map(|(first, last)| (first.to_string(), last.to_string()));
    }

    /// Counts one, and the array that it was about.
    pub(crate) fn add(&mut self, array: Option<&Array>) {
        let report = &mut self.report;
        report.count += 1;
        let Some(array) = array else { return };
        report.elements += array.len() as u64;
        report.bytes += array.bytes().len() as u64;
        report.unlike = report.unlike.map(|count| count + u64::from(!are_alike(array)));
        let last = array.len().checked_sub(1).and_then(|last| array.get(last));
        let ends = array.get(0).zip(last);
        report.ends = ends.map(|(first, last)| (first.to_string(), last.to_string()));
    }

    /// Adds the fields that an update marks as changed or overrun.
    pub(crate) fn add_fields(&mut self, changed: &Bits, overrun: &Bits) {
        self.report.changed.union(changed);
        self.report.overrun.union(overrun);
    }

    /// Counts updates that came and were dropped here.
    pub(crate) fn lost(&mut self, count: u64) {
        self.report.lost += count;
    }

    /// The report, if a second has passed and there is something in it; counting starts again.
    pub(crate) fn due(&mut self) -> Option<Report> {
        if self.began.elapsed() < Duration::from_secs(1) {
            return None;
        }
        self.take()
    }

    /// The report of what has not been reported.
    pub(crate) fn take(&mut self) -> Option<Report> {
        let unlike_before = self.unlike_before + self.report.unlike.unwrap_or(0);
        let next = Self::new(self.report.what).checking(self.checks);
        let next = Self { unlike_before, ..next };
        let done = std::mem::replace(self, next);
        let seconds = done.began.elapsed().as_secs_f64().max(1e-9);
        (done.report.count > 0).then_some(Report { seconds, ..done.report })
    }

    /// How a command ends: arrays that are not as they are checked to be are an error.
    pub(crate) fn outcome(&self, name: &str) -> anyhow::Result<ExitCode> {
        match self.unlike_before + self.report.unlike.unwrap_or(0) {
            0 => Ok(ExitCode::SUCCESS),
            torn => bail!("{name}: {torn} of the arrays had elements that differ"),
        }
    }
}

impl Report {
    /// One line, with rounded numbers and their units.
    pub(crate) fn text(&self) -> String {
        let rate = |count: u64, unit: &str| scaled(count as f64 / self.seconds, unit);
        let mut text = rate(self.count, &format!(" {}/s", self.what));
        if let Some((first, last)) = &self.ends {
            text.push_str(&format!("  first {first}  last {last}"));
        }
        if self.what == "updates" {
            let (changed, overrun) = (set(&self.changed), set(&self.overrun));
            text.push_str(&format!("  changed {changed}  overrun {overrun} by the server"));
            text.push_str(&format!(", {} by the client", self.lost));
        }
        if self.elements > 0 {
            text.push_str(&format!("  {}", rate(self.elements, " elements/s")));
            text.push_str(&format!("  {}", rate(self.bytes, "B/s")));
        }
        if self.shared > 0 {
            text.push_str("  in shared memory, seen at both ends and once a page");
        }
        if let Some(unlike) = self.unlike {
            text.push_str(&format!("  {unlike} unlike"));
        }
        text.push_str(&format!("  in {:.3} s", self.seconds));
        text
    }

    /// The same with raw numbers.
    pub(crate) fn json(&self) -> Json {
        let bits = |bits: &Bits| bits.iter().collect::<Vec<_>>();
        let mut object = json!({
            "schema": 1,
            "seconds": self.seconds,
            self.what: self.count,
            format!("{}_per_s", self.what): self.count as f64 / self.seconds,
            "elements": self.elements,
            "elements_per_s": self.elements as f64 / self.seconds,
            "bytes": self.bytes,
            "bytes_per_s": self.bytes as f64 / self.seconds,
        });
        if let Some((first, last)) = &self.ends {
            object["first"] = json!(first);
            object["last"] = json!(last);
        }
        if self.what == "updates" {
            object["changed"] = json!(bits(&self.changed));
            object["server_overrun"] = json!(bits(&self.overrun));
            object["client_overrun"] = json!(self.lost);
            object["shared"] = json!(self.shared);
        }
        if let Some(unlike) = self.unlike {
            object["unlike"] = json!(unlike);
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
fn scaled(number: f64, unit: &str) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match scales.into_iter().find(|(scale, _)| number >= *scale) {
        Some((scale, letter)) => format!("{:.3} {letter}{unit}", number / scale),
        None => format!("{number:.3} {}", unit.trim_start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_rounded_for_people_and_raw_for_programs() {
        let report = Report {
            what: "iterations",
            seconds: 1.0002,
            count: 35,
            elements: 350_000_000,
            bytes: 2_800_000_000,
            ..Report::default()
        };
        let meant = "34.993 iterations/s  349.930 M elements/s  2.799 GB/s  in 1.000 s";
        assert_eq!(report.text(), meant);
        let json = report.json();
        assert_eq!((&json["iterations"], &json["seconds"]), (&json!(35), &json!(1.0002)));
        assert_eq!(json["iterations_per_s"], json!(35.0 / 1.0002));
    }
}
