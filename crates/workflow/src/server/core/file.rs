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
const MOST_LINES: usize = 10_000;

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
    let (path, max_lines) = (path.to_owned(), max_lines.unwrap_or(MOST_LINES));
    let make = move || {
        let scope = Scope::of(&snapshot, id);
        let job = scope.any("ECF_JOB").unwrap_or_default().to_owned();
        let read = |file: &str| {
            Disk.read(file).map_err(|why| not_opened(&scope, kind, (file, &path), &why))
        };
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
            FileKind::Output => {
                let file = scope.any("ECF_JOBOUT").unwrap_or_default();
                Disk::read_end(file).map_err(|why| not_opened(&scope, kind, (file, &path), &why))
            }
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

/// Why a file isn't there, in ecFlow's words.
fn not_opened(
    scope: &Scope,
    kind: FileKind,
    (file, path): (&str, &str),
    why: &io::Error,
) -> String {
    let why = why.to_string();
    let why = why.split(" (os error").next().unwrap_or_default();
    let who = "CFileCmd::doHandleRequest: Failed to open the";
    match kind {
        FileKind::Output if scope.user("ECF_JOBOUT") == Some(file) => format!(
            "Failed to open user specified job-out(ECF_JOBOUT='{file}')  for task {path} ({why})"
        ),
        FileKind::Output => {
            let folder = match scope.user("ECF_OUT") {
                Some(_) => " (ECF_JOBOUT=ECF_OUT",
                None => "(ECF_JOBOUT=ECF_HOME",
            };
            format!(
                "Failed to open the job-out{folder}/ECF_NAME.ECF_TRYNO='{file}')  for task {path} \
                 ({why})"
            )
        }
        FileKind::Job => format!("{who} job file('{file}') for task {path} ({why})"),
        FileKind::Kill => format!("{who} kill output file('{file}') for task {path} ({why})"),
        FileKind::Status => format!("{who} status output file('{file}') for task {path} ({why})"),
        FileKind::Script | FileKind::Manual => format!("CFileCmd: {file}: {why}"),
    }
}
