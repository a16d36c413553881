//! Which definition a suite's steps are about.

use std::path::Path;
use std::sync::Arc;

use super::super::builds::generate_builds;
use super::super::folder::of_folder_beside;
use super::super::generate::{Counts, generate};
use super::made::{JOBS, PAIRS, RELEASED};

/// A suite behind the definitions of a folder: of the last suite and its last task the steps see
/// whether they were done, and what users' own are like isn't known.
const LAST: &str = "\
suite loadline_last
  task gate
    defstatus complete
    event go
  task last
    trigger gate:go == set
endsuite
";

/// The names of all suites that the lab adds.
const OURS: [&str; 4] = ["loadline_last", JOBS, PAIRS, RELEASED];

/// A definition that is still to be made, or one that was read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Scaled(Counts),
    Builds,
    Folder(Arc<str>),
}

impl Source {
    /// All definitions of a folder. No task of them starts a job.
    ///
    /// # Errors
    /// With the file that is refused.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, String> {
        let text = of_folder_beside(folder, &OURS)?;
        Ok(Self::Folder((without_jobs(&text) + LAST).into()))
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory doesn't fail.
        let _ = match self {
            Self::Scaled(counts) => generate(counts, &mut text),
            Self::Builds => generate_builds(&mut text),
            Self::Folder(text) => return text.to_string(),
        };
        String::from_utf8(text).unwrap_or_default()
    }
}

/// A printed definition whose tasks have no jobs: users' commands are not carried out because the
/// server is measured, and nothing is written below their ECF_HOME, archives neither.
fn without_jobs(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.lines() {
        let is_replaced = |name| {
            let value =
                line.trim_start().strip_prefix("edit ").and_then(|one| one.strip_prefix(name));
            value.is_some_and(|value| value.starts_with(' '))
        };
        if is_replaced("ECF_HOME") || is_replaced("ECF_DUMMY_TASK") {
            continue;
        }
        all.push_str(line);
        all.push('\n');
        if line.starts_with("suite ") {
            all.push_str("  edit ECF_DUMMY_TASK ''\n");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Scope;

    #[test]
    fn definitions_of_a_folder_start_no_job_and_leave_the_lab_its_suite() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own.def");
        let own = "suite a\n edit ECF_HOME '/home/me'\n edit ECF_DUMMY_TASK ''\n task t\n  \
                   edit ECF_JOB_CMD 'sbatch %ECF_JOB%'\n  edit ECF_HOME '/home/me/t'\nendsuite\n\
                   suite b\n family f\n  task t\n   edit ECF_HOMES 'x'\n";
        std::fs::write(&file, own).expect("written");
        let text = Source::of_folder(folder.path()).expect("a definition").text();
        assert!(!text.contains("/home/me") && text.contains("edit ECF_HOMES 'x'"), "{text}");
        let parsed = crate::definition::parse(&text, "own.def").expect("a definition");
        for (path, is_dummy) in [("/a/t", true), ("/b/f/t", true), ("/loadline_last/last", false)] {
            let task = parsed.tree.find(path).expect("a task");
            let scope = Scope::of(&parsed.tree, task);
            assert_eq!(scope.user("ECF_DUMMY_TASK").is_some(), is_dummy, "{path}");
        }
        // A user's own suites may have any other name.
        let own = ["jobs", "pairs", "released"].map(|name| format!("suite {name}\nendsuite\n"));
        std::fs::write(&file, own.concat()).expect("written");
        Source::of_folder(folder.path()).expect("a definition");
        for name in OURS {
            std::fs::write(&file, format!("suite {name}\n task t\n")).expect("written");
            let why = Source::of_folder(folder.path()).expect_err("a fault");
            assert!(why.contains("own.def: ") && why.contains("another name"), "{why}");
        }
    }
}
