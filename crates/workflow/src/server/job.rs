//! Making a task's job, on the pool's threads.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::core::{CommandKind, Edited, NO_SCRIPT, NOT_MADE, Submission, said, submissions};
use super::disk::Disk;
use super::message::{CommandEnd, CommandWhat, Message};
use super::places::{Happened, Start};
use crate::model::{NodeId, Snapshot};
use crate::protocol::Reply;
use crate::script::{Origin, Scope, Source, job, locate, substitute};

/// Why a job isn't made of which a panic has been printed.
const BROKE_OFF: &str = "making it broke off, by a fault of the server that its standard error has";

/// Makes the job of a submission, and its command; of other commands, those alone. The owner learns
/// of what has come of it, has the command started where it is still meant, and learns of each
/// further step, and of a job that takes longer to make than is meant.
pub(super) fn make(submission: Submission, owner: &Sender<Message>, meant: Duration) {
    let Submission { kind, path, try_no, password, is_for_zombie, .. } = &submission;
    let (kind, try_no, is_for_zombie) = (*kind, *try_no, *is_for_zombie);
    let (path, password) = (path.clone(), password.clone());
    let end = move |what| {
        let (path, password) = (path.clone(), password.clone());
        CommandEnd { kind, path, try_no, password, is_for_zombie, what }
    };
    let begun = Instant::now();
    // Whoever waits behind it would wait for ever.
    let prepared = catch_unwind(AssertUnwindSafe(|| prepare(&submission)));
    let prepared = prepared.unwrap_or_else(|_| {
        let why = BROKE_OFF.to_owned();
        Err(match kind {
            CommandKind::Kill | CommandKind::Status => CommandWhat::NotStarted(why),
            _ => CommandWhat::NotMade(why),
        })
    });
    let took = begun.elapsed();
    // The owner ends last.
    if kind == CommandKind::Job && took > meant {
        let (path, took, meant) = (&submission.path, took.as_millis(), meant.as_millis());
        let _ = owner.send(Message::Command(end(CommandWhat::Slow(format!(
            "Job generation for task {path} took {took}ms, Exceeds ECF_TASK_THRESHOLD({meant}ms)"
        )))));
    }
    let (what, command) = match prepared {
        Ok((size, command)) => (CommandWhat::Written(size), command),
        Err(what) => (what, None),
    };
    let made = end(what);
    let start = command.map(|command| {
        let owner = owner.clone();
        let of = (format!("{} of {}", kind.variable(), submission.path), command.clone());
        let notify = Box::new(move |happened| {
            let _ = owner.send(Message::Command(end(what_of(happened, &of))));
        });
        let Submission { path, try_no, password, number, .. } = submission;
        let job = (try_no, password);
        Box::new(Start { kind, path, job, is_for_zombie, number, command, notify })
    });
    let _ = owner.send(Message::Made(made, start));
}

/// What has become of a command, which has this name.
fn what_of(happened: Happened, (name, command): &(String, String)) -> CommandWhat {
    match happened {
        Happened::Started => CommandWhat::Started,
        Happened::Failed(why) => CommandWhat::NotStarted(why.to_string()),
        Happened::Ended(process, Ok(status)) => {
            CommandWhat::Ended { process, status, command: command.clone() }
        }
        Happened::Ended(process, Err(why)) => CommandWhat::Lost(format!(
            "{name} (process {process}) has ended, and how is unknown: {why}"
        )),
    }
}

/// What came of writing jobs.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// How many were written.
    pub(crate) written: usize,
    /// How many tasks have none.
    pub(crate) passed: usize,
    /// Why others could not be made, in ecFlow's words.
    pub(crate) errors: Vec<String>,
}

/// Writes the files of the jobs of a node's tasks, which are not started, and says what fails.
pub(super) fn check(tree: &Snapshot, id: NodeId) -> Reply {
    let made = write_all(submissions(tree, id));
    if made.errors.is_empty() { Reply::OK } else { Reply::Error(made.errors.concat()) }
}

/// Writes the jobs of all tasks of a tree that has begun: below a folder, or where they belong.
pub(crate) fn job_files(tree: &Snapshot, below: Option<&Path>) -> Made {
    write_all(submissions(tree, NodeId::ROOT).map(|mut one| {
        if let Some(below) = below {
            let file = format!("{}{}.job{}", below.display(), one.path, one.try_no);
            one.scope.set("ECF_JOB", &file);
        }
        one
    }))
}

fn write_all(submissions: impl Iterator<Item = Submission>) -> Made {
    let mut made = Made::default();
    for one in submissions {
        let is_made = ["ECF_DUMMY_TASK", "ECF_NO_SCRIPT"];
        if is_made.iter().any(|name| one.scope.user(name).is_some()) {
            made.passed += 1;
            continue;
        }
        let (code, why) = match make_job(&one, &[], &[]) {
            Err(CommandWhat::NoScript(why)) => (NO_SCRIPT, why),
            Err(CommandWhat::NotMade(why)) => (NOT_MADE, why),
            _ => {
                made.written += 1;
                continue;
            }
        };
        made.errors.push(said(code, &one.path, &why).0);
    }
    made
}

/// What a job's process may have beside letters and digits where it goes into a command: whoever
/// reaches the port names one, and a shell reads the command.
const FIT: &str = "._@:,+=/[]-";

/// Whether a command takes a process for a word, and no option.
fn is_fit(process: &str) -> bool {
    !process.starts_with('-')
        && process.chars().all(|one| one.is_ascii_alphanumeric() || FIT.contains(one))
}

/// Writes the job's file; returns its size, where there is one, and the command to be run, where
/// one is.
fn prepare(submission: &Submission) -> Result<(Option<usize>, Option<String>), CommandWhat> {
    let Submission { kind, scope, edited, .. } = submission;
    let micro = scope.user("ECF_MICRO").unwrap_or("%");
    let (lines, variables) = match edited.as_deref() {
        Some(Edited::Run { lines, variables }) => (&lines[..], &variables[..]),
        Some(Edited::Create(lines)) => {
            write_alias(scope, lines).map_err(CommandWhat::ScriptNotWritten)?;
            (&[][..], &[][..])
        }
        None => (&[][..], &[][..]),
    };
    let with_values = |name: &str| {
        let command = scope.user(name).unwrap_or_default();
        let values =
            |scope: &Scope| substitute(command.as_bytes(), scope, variables, micro.as_bytes());
        let bytes = values(scope);
        if let Some(process) = scope.any("ECF_RID").filter(|process| !is_fit(process)) {
            let mut without = scope.clone();
            without.set("ECF_RID", "");
            if values(&without) != bytes {
                return Err(CommandWhat::NotStarted(format!(
                    "{name} of {} is not run: the job calls its process {process:?}, and only \
                     letters, digits and {FIT} go into a command, and none begins with -",
                    submission.path
                )));
            }
        }
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
            CommandWhat::NotStarted(format!("variable substitution failed for {name}({command})"))
        })
    };
    let size = match kind {
        CommandKind::Script => return Ok((None, None)),
        CommandKind::Job if scope.user("ECF_DUMMY_TASK").is_some() => return Ok((None, None)),
        CommandKind::Job if scope.user("ECF_NO_SCRIPT").is_none() => {
            Some(make_job(submission, lines, variables)?)
        }
        _ => None,
    };
    Ok((size, Some(with_values(kind.variable())?)))
}

/// Writes the job's file, and returns its size.
fn make_job(
    submission: &Submission,
    lines: &[String],
    variables: &[(String, String)],
) -> Result<usize, CommandWhat> {
    let Submission { path, scope, .. } = submission;
    let script = locate(&Disk, scope, path).map_err(CommandWhat::NoScript)?;
    let lines = (!lines.is_empty()).then_some(lines);
    let source = Source { node: path, script: &script, lines, edited: variables };
    let made = job(&Disk, scope, source).map_err(CommandWhat::NotMade)?;
    let file = scope.any("ECF_JOB").unwrap_or_default();
    if let Some(edited) = made.edited.filter(|_| !submission.is_alias) {
        // Beside the script where it is its own, else beside the job.
        let beside = if script.origin == Origin::Script { &script.text } else { file };
        let name = path.rsplit('/').next().unwrap_or_default();
        let user = Path::new(beside).with_file_name(format!("{name}.usr"));
        write(&user, &edited, 0o644).map_err(|why| {
            let what = "EcfFile::doCreateUsrFile: file creation failed : ";
            CommandWhat::NotMade(format!("{what}{} ({why})", user.display()))
        })?;
    }
    write(Path::new(file), &made.bytes, 0o755).map_err(|why| {
        let what = "EcfFile::doCreateJobFile: Could not create job file : ";
        CommandWhat::NotMade(format!("{what}{file} ({why})"))
    })?;
    Ok(made.size)
}

/// Writes the script of an alias.
fn write_alias(scope: &Scope, lines: &[String]) -> Result<(), String> {
    let script = scope.generated("ECF_SCRIPT").unwrap_or_default();
    write(Path::new(script), lines.join("\n").as_bytes(), 0o644).map_err(|why| {
        format!("Task::add_alias: could not create .usr file at path({script}): {why}")
    })
}

/// Writes a file with this mode, and the folders that it is in.
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    // Of a file that was there the mode stays, and the umask takes from that of a new one.
    file.set_permissions(fs::Permissions::from_mode(mode))
}
