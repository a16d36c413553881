//! `--file`: the script, manual, job or output of a node.

use std::io;

use crate::model::{NodeId, Tree};
use crate::protocol::{FileKind, Reply};
use crate::script::{Files as _, Scope, Source, locate, manual};
use crate::server::disk::Disk;

use super::check::shown;
use super::parts::Told;
use super::text;

/// The lines of an answer whose request says none.
const DEFAULT_LINES: usize = 10_000;

/// Reads a file of a node, of which the last lines are wanted.
pub(super) fn file(tree: &Tree, kind: FileKind, path: &str, max_lines: i64) -> Told {
    let snapshot = tree.snapshot();
    let Some(id) = snapshot.find(path).filter(|id| *id != NodeId::ROOT) else {
        return Told::Reply(Reply::error(text::no_node(path)));
    };
    let is_job = snapshot.node(id).kind.is_job();
    if !is_job && kind != FileKind::Manual {
        let why = format!("Option {} is only valid for tasks", kind.word());
        return Told::Reply(Reply::error(why));
    }
    let max_lines = usize::try_from(max_lines).ok().filter(|most| *most > 0);
    let (path, max_lines) = (path.to_owned(), max_lines.unwrap_or(DEFAULT_LINES));
    let make = move || {
        let scope = Scope::of(&snapshot, id);
        let job = scope.any("ECF_JOB").unwrap_or_default().to_owned();
        let read =
            |file: &str| Disk.read(file).map_err(|why| not_opened(kind, (file, &path), &why));
        let located = || {
            locate(&Disk, &scope, &path).map_err(|why| match is_job {
                true => why,
                false => format!(
                    "EcfFile::manual: For node {}, failed to open file  : \
                     EcfFile::open_script_file: Could not open ecf manual file. Input File/cmd \
                     string is empty.",
                    shown(&snapshot, id)
                ),
            })
        };
        let bytes = match kind {
            FileKind::Job => read(&job),
            FileKind::Output => output(&scope, &path),
            FileKind::Kill => read(&format!("{job}.kill")),
            FileKind::Status => read(&format!("{job}.stat")),
            FileKind::Script => located().and_then(|located| read(&located.text)),
            FileKind::Manual => located().and_then(|located| {
                let source = Source { node: &path, script: &located, lines: None, edited: &[] };
                manual(&Disk, &scope, source)
            }),
        };
        match bytes {
            Ok(bytes) => Reply::Text(text::last_lines(&bytes, max_lines)),
            Err(why) => Reply::Error(why),
        }
    };
    match kind {
        FileKind::Manual => Told::of_script(tree, id, make),
        _ => Told::Later(Box::new(make)),
    }
}

/// A job's output, looked for as ecFlow does: where a user says, where the server does, and where
/// ECF_OUT is set, below ECF_HOME.
fn output(scope: &Scope, path: &str) -> Result<Vec<u8>, String> {
    let user = scope.user("ECF_JOBOUT");
    let made = scope.generated("ECF_JOBOUT").unwrap_or_default();
    let value = |name| scope.any(name).unwrap_or_default();
    let below_home = format!("{}{path}.{}", value("ECF_HOME"), value("ECF_TRYNO"));
    let has_folder = scope.user("ECF_OUT").is_some();
    let last = has_folder.then_some(&*below_home);
    let mut why = String::new();
    for file in user.into_iter().chain([made]).chain(last) {
        match Disk::read_end(file) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => why = words(&error),
        }
    }
    let user =
        user.map(|file| format!("Failed to open user specified job-out(ECF_JOBOUT='{file}') "));
    let below = "ECF_JOBOUT=ECF_HOME/ECF_NAME.ECF_TRYNO";
    let others = match has_folder {
        true => format!(
            " (ECF_JOBOUT=ECF_OUT/ECF_NAME.ECF_TRYNO='{made}') *AND* ({below}='{below_home}')"
        ),
        false => format!("({below}='{made}') "),
    };
    let user = user.unwrap_or_default();
    Err(format!("{user}Failed to open the job-out{others} for task {path} ({why})"))
}

/// The system's words.
fn words(why: &io::Error) -> String {
    let why = why.to_string();
    why.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Why a file isn't there, in ecFlow's words.
fn not_opened(kind: FileKind, (file, path): (&str, &str), why: &io::Error) -> String {
    let why = words(why);
    let who = "CFileCmd::doHandleRequest: Failed to open the";
    match kind {
        FileKind::Job => format!("{who} job file('{file}') for task {path} ({why})"),
        FileKind::Kill => format!("{who} kill output file('{file}') for task {path} ({why})"),
        FileKind::Status => format!("{who} status output file('{file}') for task {path} ({why})"),
        FileKind::Output | FileKind::Script | FileKind::Manual => {
            format!("CFileCmd: {file}: {why}")
        }
    }
}
