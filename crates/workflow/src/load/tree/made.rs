//! Definitions, and the paths of their nodes, made once for all targets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::requests::command;
use super::names::{Names, node};
use crate::protocol::Command;

/// The suite of the jobs, and that of the pairs of tasks. The prefix keeps the names of the suites
/// that the steps add from those of a user's definitions.
pub(super) const JOBS: &str = "loadline_jobs";
pub(super) const PAIRS: &str = "loadline_pairs";

/// The suite of the tasks that one task releases, and that task.
pub(super) const RELEASED: &str = "loadline_released";
pub(super) const RELEASES: &str = "/loadline_released/f/first";

/// The definition of a scale.
#[derive(Debug)]
pub(super) struct Made {
    /// The request that loads it.
    pub(super) load: Vec<u8>,
    pub(super) names: Names,
    /// The request that replaces the last suite by itself.
    pub(super) replace: Vec<u8>,
    /// Absolute paths.
    pub(super) suites: Vec<String>,
    pub(super) tasks: Vec<String>,
}

impl Made {
    /// What a definition, whose last suite and task wait, says.
    pub(super) fn new(definition: String) -> Self {
        let names = Names::of(&definition);
        let (suites, tasks) = paths(&definition);
        let path = suites.last().cloned().unwrap_or_default();
        let last = definition.rfind("\nsuite ").map_or("", |at| &definition[at + 1..]);
        let replace = command(Command::Replace {
            creates: true,
            force: true,
            path,
            file: "loadline.def".to_owned(),
            definition: last.to_owned(),
        });
        Self { load: loaded(definition), names, replace, suites, tasks }
    }
}

/// The request that loads a definition.
pub(super) fn loaded(definition: String) -> Vec<u8> {
    command(Command::Load { force: false, definition, file: "loadline.def".to_owned() })
}

/// The absolute paths of suites and of tasks.
fn paths(definition: &str) -> (Vec<String>, Vec<String>) {
    let (mut suites, mut tasks) = (Vec::new(), Vec::new());
    let mut above = String::new();
    for line in definition.lines() {
        match node(line) {
            Some(("task", name)) => tasks.push(format!("{above}/{name}")),
            Some((kind, name)) => {
                above.push('/');
                above.push_str(name);
                if kind == "suite" {
                    suites.push(above.clone());
                }
            }
            None if matches!(line.trim(), "endfamily" | "endsuite") => {
                above.truncate(above.rfind('/').unwrap_or(0));
            }
            None => {}
        }
    }
    (suites, tasks)
}

/// The path of a job's task, or of the first or second task of a pair.
pub(super) fn job(number: u64) -> String {
    format!("/{JOBS}/f/t{number}")
}

/// The path of a pair's first task.
pub(super) fn first(pair: u64) -> String {
    format!("/{PAIRS}/f/a{pair}")
}

/// The path of a pair's second task.
pub(super) fn second(pair: u64) -> String {
    format!("/{PAIRS}/f/b{pair}")
}

/// The variables of a suite whose jobs lie in `folder`: the command by which a job is started
/// appends the task's path to the file [`started`]. Scripts are looked for there, too.
fn head(suite: &str, folder: &Path) -> String {
    let (started, folder) = (started(suite, folder), folder.display());
    let started = started.display();
    format!(
        "suite {suite}\n  edit ECF_HOME '{folder}'\n  edit ECF_JOB_CMD \
         'echo %ECF_NAME% >> {started}'\n  edit ECF_FILES '{folder}'\n"
    )
}

/// The file that has the paths of a suite's tasks whose commands were carried out.
pub(super) fn started(suite: &str, folder: &Path) -> PathBuf {
    folder.join(format!("started-{suite}"))
}

/// A suite of tasks that are all free to run.
pub(super) fn jobs(folder: &Path, count: u64) -> String {
    let mut text = head(JOBS, folder) + "  family f\n";
    for number in 0..count {
        // Writing to memory doesn't fail.
        let _ = writeln!(text, "    task t{number}");
    }
    text + "  endfamily\nendsuite\n"
}

/// Pairs of tasks: the second runs when the first is complete, the first never by itself.
pub(super) fn pairs(folder: &Path, count: u64) -> String {
    let mut text = head(PAIRS, folder);
    text += "  task gate\n    defstatus complete\n    event go\n  family f\n";
    for pair in 0..count {
        let _ = writeln!(text, "    task a{pair}\n      trigger ../gate:go == set");
        let _ = writeln!(text, "    task b{pair}\n      trigger a{pair} == complete");
    }
    text + "  endfamily\nendsuite\n"
}

/// Tasks that one task releases, which doesn't run by itself.
pub(super) fn released(folder: &Path, count: u64) -> String {
    let mut text = head(RELEASED, folder);
    text += "  task gate\n    defstatus complete\n    event go\n  family f\n";
    text += "    task first\n      trigger ../gate:go == set\n";
    for number in 0..count {
        let _ = writeln!(text, "    task r{number}\n      trigger first == complete");
    }
    text + "  endfamily\nendsuite\n"
}

#[cfg(test)]
mod tests {
    use super::super::super::generate::Counts;
    use super::super::source::Source;
    use super::*;

    #[test]
    fn paths_and_names_are_those_of_the_definition() {
        let made = Made::new(Source::Scaled(Counts::scaled(0.001).expect("a scale")).text());
        assert_eq!((made.suites.len(), made.suites[17].as_str()), (18, "/s17"));
        let replace = String::from_utf8_lossy(&made.replace);
        assert!(replace.contains("suite s17") && !replace.contains("suite s16"), "the last suite");
        assert_eq!(made.tasks[0], "/s00/gate");
        let text = jobs(Path::new("/tmp/x"), 3) + &pairs(Path::new("/tmp/x"), 2);
        let parsed = crate::definition::parse(&text, "jobs.def").expect("a definition");
        for path in [job(2), first(1), second(1)] {
            assert!(parsed.tree.find(&path).is_some(), "{path}");
        }
        let text_of_released = released(Path::new("/tmp/x"), 1);
        let tree = crate::definition::parse(&text_of_released, "x").expect("a definition").tree;
        assert!(tree.find(RELEASES).is_some() && tree.find(&format!("/{RELEASED}/f/r0")).is_some());
        assert_eq!(Names::of(&text).nodes, 2 + 3 + 2 + 1 + 4);
        let (suites, tasks) = paths(&text);
        assert_eq!((suites.len(), tasks.len()), (2, 8));
        assert!(tasks.iter().all(|path| parsed.tree.find(path).is_some()));
    }
}
