//! Whether `loadline rpc why` names the cause that was planted. No suite plants it: a run is the
//! command itself, with a server of its own, and takes a second.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::{self, commit, host};
use crate::process::program;

/// Its name on the command line and in the document's markers.
pub(super) const NAME: &str = "rpc-why";

/// The page that shows what came of it.
const DOCUMENT: &str = "docs/rpc-why.md";

/// The runs of each plant.
const RUNS: usize = 10;

/// Each has to be found in this share of its runs.
const ENOUGH_FOUND: f64 = 0.9;

/// Flags that plant a cause, and the words by which it is found.
struct Plant {
    flags: &'static str,
    /// Those of the server.
    served: &'static str,
    /// What starts it: a command of the shell, in which `SERVER` is its own.
    shell: &'static str,
    words: &'static str,
    /// By which others are found that are there as well.
    with: &'static [&'static str],
}

const fn plant(flags: &'static str, served: &'static str, words: &'static str) -> Plant {
    Plant { flags, served, shell: "exec SERVER", words, with: ANYWHERE }
}

const fn plant_with(with: &'static [&'static str], plant: Plant) -> Plant {
    Plant { with, ..plant }
}

static PLANTS: &[Plant] = &[
    plant_with(
        &[TWO_WRITES, FEW_SLOW, OTHERS],
        plant(
            "--writes struct --nagle",
            "",
            "ms = Nagle + delayed acknowledgement: 2 writes per request.",
        ),
    ),
    plant_with(
        &[TWO_WRITES, THEIR_WRITES, FEW_SLOW, OTHERS],
        plant(
            "--writes struct --nagle",
            "--writes struct --nagle",
            "ms = Nagle + delayed acknowledgement: 2 writes per request, and 2 of the server",
        ),
    ),
    plant("--writes field", "", "8 writes per request: each"),
    plant("--writes struct --buffered --flush each", "", TWO_WRITES),
    plant("--reads 4", "", "4 reads per answer"),
    plant("", "--writes struct", THEIR_WRITES),
    plant("--wait spin --cpus 0,1", "", "busy wait"),
    plant("--future condvar --cpus 0", "", "the future"),
    plant("--allocate 5000", "", "allocations: 500"),
    plant("--decode consumed", "", "empty decode: decode returned 0 of 8 elements"),
    plant("--cpus 0", "", ONE_CORE),
    plant("--cpus 0,1", "", TWO_CORES),
    Plant {
        shell: "SERVER & while sleep 0.05; do kill -STOP $!; sleep 0.2; kill -CONT $!; done",
        ..plant("", "", FEW_SLOW)
    },
    Plant {
        shell: "while :; do :; done & exec nice -n 10 SERVER",
        ..plant("--cpus 0,1", "", OTHERS)
    },
];

const TWO_WRITES: &str = "2 writes per request: each";
const THEIR_WRITES: &str = "the server sends an answer by 2 writes";
const ONE_CORE: &str = "both ends on one core (0)";
const TWO_CORES: &str = "two cores: ";
const FEW_SLOW: &str = "few slow calls";
const OTHERS: &str = "others run";

/// Where both ends run may take a part of any call that doesn't wait for something else, and others
/// may keep any call from its core.
const ANYWHERE: &[&str] = &[ONE_CORE, TWO_CORES, FEW_SLOW, OTHERS];

impl Plant {
    /// As it is typed.
    fn typed(&self) -> String {
        let Self { flags, served, shell, .. } = self;
        let server = format!("serve rpc {served}");
        let server = shell.replace("exec ", "").replace("SERVER", server.trim_end());
        let parts = [*flags, &server[..]];
        let typed = parts.iter().filter(|part| !["", "serve rpc"].contains(part));
        typed.map(|part| format!("`{part}`")).collect::<Vec<_>>().join("; ")
    }

    /// Whether the cause of these words is there, too.
    fn is_there(&self, words: &str) -> bool {
        self.words.contains(words) || self.with.contains(&words)
    }

    /// The causes that one run names.
    fn causes(&self) -> Result<Vec<String>> {
        let program = program();
        let Self { served, shell, .. } = self;
        let server = format!("'{}' serve rpc --listen 127.0.0.1:0 {served}", program.display());
        let server = shell.replace("SERVER", &server);
        let mut command = Command::new(program);
        command.args(["rpc", "why", "tcp:", "--json", "--time", "300ms", "--server", &server]);
        command.args(self.flags.split_whitespace());
        let finished = command.stdin(Stdio::null()).output()?;
        if !finished.status.success() {
            let said = String::from_utf8_lossy(&finished.stderr);
            bail!("`loadline rpc why {}` failed: {}", self.flags, said.trim());
        }
        let found: Value = serde_json::from_slice(&finished.stdout).context("its JSON")?;
        let causes = found["causes"].as_array().context("its causes")?;
        Ok(causes.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// What was seen of all plants.
struct Seen {
    runs: usize,
    /// How often each was found, in the order of [`PLANTS`].
    found: Vec<usize>,
    /// How often a cause was named that wasn't planted.
    mistaken: usize,
}

impl Seen {
    fn new() -> Self {
        Self { runs: 0, found: vec![0; PLANTS.len()], mistaken: 0 }
    }

    /// Adds a run of each.
    fn add(&mut self, mut causes: impl FnMut(&Plant) -> Result<Vec<String>>) -> Result<()> {
        self.runs += 1;
        for (plant, found) in PLANTS.iter().zip(&mut self.found) {
            let causes = causes(plant)?;
            let has = |plant: &Plant| causes.iter().any(|cause| cause.contains(plant.words));
            *found += usize::from(has(plant));
            let mut others = PLANTS.iter().filter(|other| !plant.is_there(other.words));
            self.mistaken += usize::from(others.any(has));
        }
        Ok(())
    }

    fn holds(&self) -> bool {
        let enough = (self.runs as f64 * ENOUGH_FOUND).ceil() as usize;
        // A wrong cause is worse than none.
        self.found.iter().all(|found| *found >= enough) && self.mistaken == 0
    }

    /// As Markdown.
    fn text(&self) -> String {
        let Self { runs, mistaken, .. } = self;
        let outcome = if self.holds() { "It holds" } else { "**It does not hold**" };
        let mut text = format!("| planted by | found | of {runs} |\n|---|---|--:|\n");
        for (plant, found) in PLANTS.iter().zip(&self.found) {
            let words = plant.words.trim_end_matches([' ', ':', '.']);
            // A String takes all that is written.
            let _ = writeln!(text, "| {} | {words} | {found} |", plant.typed());
        }
        let _ = writeln!(
            text,
            "\nEach has to be found in 9 of 10 runs, and no other one of these causes named in \
             any. {outcome}. One that wasn't planted was named in {mistaken} of {}.",
            runs * PLANTS.len()
        );
        text
    }
}

/// Plants each as often, prints what was found, and writes it into the document.
pub(super) fn check(runs: Option<usize>) -> Result<()> {
    let mut seen = Seen::new();
    let runs = runs.unwrap_or(RUNS).max(1);
    for number in 1..=runs {
        eprintln!("{NAME}: {} plants, run {number} of {runs}", PLANTS.len());
        seen.add(Plant::causes)?;
    }
    let text = seen.text();
    println!("{text}");
    let block = format!("{text}\nCommit {}, {}.\n", commit()?, host());
    bench::write(DOCUMENT, &format!("credibility:{NAME}"), &block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::replace;
    use crate::process::repository;

    /// Runs in each of which every plant but these is found, and nothing else.
    fn seen(runs: usize, missed: &[&str]) -> Seen {
        let mut seen = Seen::new();
        for _ in 0..runs {
            let causes = |plant: &Plant| {
                let is_missed = missed.contains(&plant.words);
                Ok(if is_missed { Vec::new() } else { vec![plant.words.to_owned()] })
            };
            seen.add(causes).expect("causes");
        }
        seen
    }

    #[test]
    fn each_plant_has_to_be_found_in_nine_of_ten_runs() {
        assert!(seen(10, &[]).holds());
        assert!(!seen(10, &["busy wait"]).holds());
        let mut once = seen(9, &[]);
        once.add(|_| Ok(Vec::new())).expect("causes");
        assert!(once.holds(), "{:?}", once.found);
        once.add(|_| Ok(Vec::new())).expect("causes");
        assert!(!once.holds(), "9 of 11: {:?}", once.found);
    }

    #[test]
    fn a_cause_that_is_named_without_a_plant_is_a_mistake() {
        let mut seen = seen(10, &[]);
        assert!(seen.holds());
        seen.add(|plant| Ok(vec![plant.words.to_owned(), TWO_CORES.to_owned()])).expect("causes");
        assert_eq!(seen.mistaken, 2, "those that wait 40 ms for something else");
        assert!(!seen.holds());
        assert!(seen.text().contains("It does not hold"), "{}", seen.text());
        let rows = [
            "| `--writes field` | 8 writes per request: each | 11 |",
            "| `serve rpc --writes struct` | the server sends",
            "| `--cpus 0,1`; `while :; do :; done & nice -n 10 serve rpc` | others run | 11 |",
        ];
        for row in rows {
            assert!(seen.text().contains(row), "{row}: {}", seen.text());
        }
        assert!(seen.text().contains("was named in 2 of 154"), "{}", seen.text());
    }

    #[test]
    fn the_page_has_its_markers() {
        let page = std::fs::read_to_string(repository().join(DOCUMENT)).expect("the page");
        assert!(replace(&page, &format!("credibility:{NAME}"), "").is_some());
    }
}
