//! Generated definitions: ours and ecFlow's module load them, and count the same nodes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use workflow::definition::parse;
use workflow::load::{Counts, generate};

use crate::commands::run;
use crate::definition::{PYTHON, has_ecflow};

const COUNT: &str = "import ecflow, sys
defs = ecflow.Defs(sys.argv[1])
print(sum(1 for node in defs.get_all_nodes()), defs.check())";

#[test]
fn generated_definitions_are_loaded_by_both_with_the_nodes_that_were_meant() {
    let has_ecflow = has_ecflow();
    let folder = TempDir::new().expect("a folder");
    for scale in [0.001, 0.01, 0.1] {
        let (path, counts) = (folder.path().join("x.def"), Counts::scaled(scale).expect("a scale"));
        let file = BufWriter::new(File::create(&path).expect("a file"));
        generate(&counts, file).expect("written");
        let text = std::fs::read_to_string(&path).expect("a definition");
        let parsed = parse(&text, "x.def").unwrap_or_else(|error| panic!("{scale}: {error}"));
        assert_eq!(parsed.tree.count() as u64, counts.nodes(), "{scale}");
        if has_ecflow {
            let counted = Command::new(PYTHON).args(["-c", COUNT]).arg(&path).output();
            let counted = String::from_utf8(counted.expect("python starts").stdout).expect("text");
            assert_eq!(counted.trim(), counts.nodes().to_string(), "{scale}");
        }
    }
}

const THEIR_JOBS: &str = "import ecflow, sys
defs = ecflow.Defs(sys.argv[1])
for suite in defs.suites:
    suite.add_variable('ECF_HOME', sys.argv[2])
control = ecflow.JobCreationCtrl()
control.set_dir_for_job_creation(sys.argv[3])
defs.check_job_creation(control)
print(control.get_error_msg(), end='')
";

/// The files below a folder, with what is in them.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let (mut all, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let text = std::fs::read_to_string(&path).expect("a job");
                // Each has a password and a host of its own.
                let lines = text.lines().filter(|line| !line.starts_with("export "));
                let text = lines.flat_map(|line| [line, "\n"]).collect();
                all.insert(path.strip_prefix(folder).expect("below it").to_owned(), text);
            }
        }
    }
    all
}

#[test]
fn jobs_of_the_other_shape_are_those_that_ecflow_s_module_makes() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (home, file) = (at("home"), at("builds.def"));
    let (_, error, code) = run(&["gen", "--shape", "builds", "--scripts", &home, "--out", &file]);
    assert_eq!((code, error.as_str()), (0, ""));
    let (out, error, code) =
        run(&["jobs", &file, "--generate-only", "--home", &home, "--out", &at("ours")]);
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.starts_with("4553 jobs ") && out.contains(", 6 without a script"), "{out}");
    if !has_ecflow() {
        return;
    }
    std::fs::create_dir(at("theirs")).expect("a folder");
    let made = Command::new(PYTHON).args(["-c", THEIR_JOBS, &file, &home, &at("theirs")]).output();
    let made = made.expect("python starts");
    assert_eq!(String::from_utf8_lossy(&made.stdout), "");
    let [ours, theirs] = ["ours", "theirs"].map(|name| files(&folder.path().join(name)));
    let differing = ours.iter().find(|(path, text)| theirs.get(*path) != Some(*text));
    assert_eq!((ours.len(), theirs.len(), differing), (4_553, 4_553, None));
}
