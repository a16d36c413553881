//! `loadline workflow check` and `lint`: what is wrong with a definition. Control plane.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use crate::definition::{Examined, examine};
use crate::lint::{self, Finding, Level};
use crate::script::Scope;
use crate::server::Disk;
use base::many;

/// The exit code where something is wrong.
const WRONG: u8 = 3;

/// A definition.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline workflow lint x.def
  loadline workflow lint x.def --home $ECF_HOME   scripts and includes, too
  loadline workflow lint x.def --json | jq '.findings[] | select(.level == \"error\")'

Exit codes: 0 no error, 3 at least one (warnings alone give 0), 2 the file can't be read.";

/// A definition, and where its scripts are.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LintArgs {
    #[command(flatten)]
    check: CheckArgs,
    /// ECF_HOME of the server that is to run it: scripts and includes are looked for, too
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Run the definition's own commands that print scripts (ECF_SCRIPT_CMD, ECF_FETCH)
    #[arg(long, requires = "home")]
    run_commands: bool,
}

pub(super) fn check(args: &CheckArgs) -> Outcome {
    let text = text_of(args)?;
    let examined = examine(&text, &args.file.display().to_string());
    show(args, &lint::check(&examined), unseen(&examined, false))
}

pub(super) fn lint(args: &LintArgs) -> Outcome {
    let text = text_of(&args.check)?;
    let examined = examine(&text, &args.check.file.display().to_string());
    let mut found = lint::lint(&examined, input::now().date());
    if let Some(home) = args.home.as_deref().filter(|_| examined.faults.is_empty()) {
        let home = folder(home)?;
        let tree = input::begun(&examined, &home)?;
        found.extend(lint::scripts(&examined, &tree, (&Disk, args.run_commands), |id| {
            Scope::of(&tree, id)
        }));
        lint::sort(&mut found);
    }
    show(&args.check, &found, unseen(&examined, true))
}

/// The definition's text. Where it can't be read, the document that was asked for says so, too.
fn text_of(args: &CheckArgs) -> Result<String, Failure> {
    let text = input::text(&args.file);
    if let (Err(why), true) = (&text, args.json) {
        let file = args.file.display().to_string();
        let finding = json!({
            "level": Level::Error.word(),
            "rule": "unreadable",
            "file": file,
            "line": null,
            "path": "",
            "text": why.to_string(),
            "fix": "",
        });
        let all = json!({"schema": 1, "errors": 1, "warnings": 0, "findings": [finding]});
        out::print(format_args!("{all}\n"))?;
    }
    text
}

fn folder(home: &Path) -> Result<PathBuf, Failure> {
    let found = home.canonicalize().ok().filter(|path| path.is_dir());
    found.ok_or_else(|| Failure::Usage(format!("--home {}: it is no folder", home.display())))
}

/// What wasn't looked at because of errors.
fn unseen(examined: &Examined, is_lint: bool) -> Option<&'static str> {
    match (examined.is_read, examined.faults.is_empty(), is_lint) {
        (false, _, false) => Some("references to nodes, attributes and limits"),
        (false, _, true) => Some("references, what never runs, limits and scripts"),
        (true, false, true) => Some("what never runs, limits and scripts"),
        _ => None,
    }
}

fn show(args: &CheckArgs, found: &[Finding], unseen: Option<&str>) -> Outcome {
    let file = args.file.display().to_string();
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if args.json {
        let findings = found.iter().map(|one| {
            json!({
                "level": one.level.word(),
                "rule": one.rule,
                "file": file,
                "line": one.line,
                "path": one.path,
                "text": one.text,
                "fix": one.fix,
            })
        });
        let findings = findings.collect::<Vec<_>>();
        let all =
            json!({"schema": 1, "errors": errors, "warnings": warnings, "findings": findings});
        out::print(format_args!("{all}\n"))?;
    } else {
        out::print(text(&file, found, errors, warnings))?;
    }
    if let Some(what) = unseen {
        out::note(format!("not looked at because of these errors: {what}"));
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
}

fn text(file: &str, found: &[Finding], errors: usize, warnings: usize) -> String {
    let mut text = String::new();
    for one in found {
        let Finding { level, rule, line, path, text: what, fix } = one;
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let _ = writeln!(text, "{file}:{line}: {}: {path}{what} [{rule}]", level.word());
        if !fix.is_empty() {
            let _ = writeln!(text, "  {fix}");
        }
    }
    let _ = writeln!(text, "{}, {}", many(errors, "error"), many(warnings, "warning"));
    text
}
