//! Scripts that aren't there, or that no job can be made of.

use super::finding::{Finding, Level};
use crate::definition::Examined;
use crate::model::{Kind, NodeId, Snapshot};
use crate::script::{Files, Located, Origin, Scope, Source, job, locate};

/// What is wrong with the scripts of a definition's tasks. `scope` has the variables that a task's
/// script sees. Commands of the definition that print scripts are only run with `--run-commands`:
/// who lints a stranger's definition doesn't mean to.
pub fn scripts<F: Files>(
    examined: &Examined,
    tree: &Snapshot,
    (files, runs_commands): (&F, bool),
    scope: impl Fn(NodeId) -> Scope,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for id in tree.walk(NodeId::ROOT).filter(|id| tree.node(*id).kind == Kind::Task) {
        let path = tree.path(id);
        let scope = scope(id);
        if ["ECF_DUMMY_TASK", "ECF_NO_SCRIPT"].into_iter().any(|one| scope.any(one).is_some()) {
            continue;
        }
        let mut level = Level::Error;
        let (rule, text, fix) = match locate(files, &scope, &path) {
            Err(why) => {
                ("no-script", why, "write it there, or add edit ECF_DUMMY_TASK '' to the task")
            }
            Ok(Located { origin: Origin::Fetch | Origin::Command, text }) if !runs_commands => {
                level = Level::Warning;
                let text = format!("its script is what a command prints: {text}");
                ("script-command", text, "--run-commands runs it, and looks at the script")
            }
            Ok(script) => {
                let source = Source { node: &path, script: &script, lines: None, edited: &[] };
                match job(files, &scope, source) {
                    Ok(_) => continue,
                    Err(why) => ("no-job", why, "correct the script, its includes or variables"),
                }
            }
        };
        let line = examined.tree.find(&path).map_or(0, |id| examined.node_line(id));
        let text = text.split('\n').map(str::trim).filter(|one| !one.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        let fix = fix.to_owned();
        found.push(Finding { level, rule, line, path, text, fix });
    }
    found
}
