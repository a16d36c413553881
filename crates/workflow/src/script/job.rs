//! A job: a script with its includes, its variables' values, and without its comments.

use super::include::Includes;
use super::{Files, Located, MAX_JOB_BYTES, Micro, Origin, Scope, lines, shown, substitute};

/// Where the lines of a job come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The task's path.
    pub node: &'a str,
    /// Its script.
    pub script: &'a Located,
    /// What a user has put in place of the script.
    pub lines: Option<&'a [String]>,
    /// Variables that a user gives for this job only.
    pub edited: &'a [(String, String)],
}

/// A job as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The file: lines with an end between two, and none at the end.
    pub bytes: Vec<u8>,
    /// The size that the log names, `job_size:N`: with an end behind each line.
    pub size: usize,
    /// With a user's variables: the job before its comments and manuals were taken out.
    pub edited: Option<Vec<u8>>,
}

/// Makes a job.
///
/// # Errors
/// As ecFlow says it: an include that isn't there, a variable without a value, a directive without
/// its `%end`.
pub fn job<F: Files>(files: &F, scope: &Scope, source: Source<'_>) -> Result<Job, String> {
    let lines = expanded(files, scope, source, "EcfFile::create_job")?;
    let lines = substituted(lines, scope, source)?;
    let edited = (!source.edited.is_empty()).then(|| lines.join(&b'\n'));
    let lines = without_directives(lines, scope, source)?;
    if lines.is_empty() {
        return Err(format!(
            "EcfFile::doCreateJobFile: The ecf file '{}' that is associated with task '{}' is \
             empty",
            source.script.text, source.node
        ));
    }
    let size = lines.iter().map(|line| line.len() + 1).sum();
    if size > MAX_JOB_BYTES {
        return Err(format!("EcfFile::create_job: the job has more than {MAX_JOB_BYTES} bytes"));
    }
    Ok(Job { bytes: lines.join(&b'\n'), size, edited })
}

/// The script's manual: what is between `%manual` and `%end`.
///
/// # Errors
/// When the script or an include can't be read, or a manual has no end.
pub fn manual<F: Files>(files: &F, scope: &Scope, source: Source<'_>) -> Result<Vec<u8>, String> {
    let lines = expanded(files, scope, source, "EcfFile::manual:")?;
    let lines = substituted(lines.clone(), scope, source).unwrap_or(lines);
    let mut micro = Micro::of(scope, source.node)?;
    let (mut manual, mut is_open) = (Vec::new(), false);
    for line in lines {
        if micro.begins(&line, "manual") {
            is_open = true;
        } else if is_open && micro.begins(&line, "end") {
            is_open = false;
        } else if micro.begins(&line, "ecfmicro") {
            micro = Micro::of_line(&line, &source.script.text)?;
        } else if is_open {
            manual.extend_from_slice(&line);
            manual.push(b'\n');
        }
    }
    Ok(manual)
}

/// The script's lines.
pub(super) fn read<F: Files>(
    files: &F,
    source: Source<'_>,
    context: &str,
) -> Result<Vec<Vec<u8>>, String> {
    let Located { origin, text } = source.script;
    Ok(match source.lines {
        Some(own) => own.iter().map(|line| line.clone().into_bytes()).collect(),
        None => {
            let found = match origin {
                Origin::Fetch => {
                    let name = source.node.rsplit('/').next().unwrap_or_default();
                    files.output(&format!("{text} -s {name}.ecf"))
                }
                Origin::Command => files.output(text),
                _ => files.read(text),
            };
            let failed =
                |why| format!("{context}: failed Could not open script file:{text} ({why})");
            lines(&found.map_err(failed)?)
        }
    })
}

/// Lines with those of their includes.
pub(super) fn with_includes<F: Files>(
    files: &F,
    scope: &Scope,
    (source, lines): (Source<'_>, Vec<Vec<u8>>),
    context: &str,
) -> Result<Vec<Vec<u8>>, String> {
    let Located { origin, text } = source.script;
    Includes::new(files, scope, (source.node, text, *origin), context)?.expand(lines)
}

fn expanded<F: Files>(
    files: &F,
    scope: &Scope,
    source: Source<'_>,
    context: &str,
) -> Result<Vec<Vec<u8>>, String> {
    let lines = read(files, source, context)?;
    with_includes(files, scope, (source, lines), context)
}

/// The blocks that are open, the innermost last.
#[derive(Default)]
pub(super) struct Pairs(Vec<Kind>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Verbatim,
    Comment,
    Manual,
}

/// What a line is.
pub(super) enum Seen {
    /// One that begins or ends a block.
    Directive,
    /// `%ecfmicro`
    Micro,
    /// Any other.
    Line,
}

impl Pairs {
    pub(super) fn line(&mut self, line: &[u8], micro: &Micro) -> Result<Seen, String> {
        for (word, kind) in
            [("manual", Kind::Manual), ("comment", Kind::Comment), ("nopp", Kind::Verbatim)]
        {
            if micro.begins(line, word) {
                self.0.push(kind);
                return Ok(Seen::Directive);
            }
        }
        if micro.begins(line, "end") {
            return match self.0.pop() {
                Some(_) => Ok(Seen::Directive),
                None => Err("EcfFile::variableSubstitution: failed unpaired %end".to_owned()),
            };
        }
        Ok(if micro.begins(line, "ecfmicro") { Seen::Micro } else { Seen::Line })
    }

    pub(super) fn is_verbatim(&self) -> bool {
        self.0.contains(&Kind::Verbatim)
    }

    /// Whether a comment or manual is open, which may name what there is not.
    pub(super) fn is_in_text(&self) -> bool {
        matches!(self.0.last(), Some(Kind::Comment | Kind::Manual))
    }
}

/// Puts values in place of variables.
pub(super) fn substituted(
    mut lines: Vec<Vec<u8>>,
    scope: &Scope,
    source: Source<'_>,
) -> Result<Vec<Vec<u8>>, String> {
    let mut micro = Micro::of(scope, source.node)?;
    let mut pairs = Pairs::default();
    let mut bytes = 0;
    for line in &mut lines {
        match pairs.line(line, &micro)? {
            Seen::Directive => {}
            Seen::Micro => {
                micro = Micro::of_line(line, &source.script.text)
                    .map_err(|why| format!("EcfFile::variableSubstitution: failed : {why}"))?;
            }
            Seen::Line if pairs.is_verbatim() || micro.find(line).is_none() => {}
            Seen::Line => match substitute(line, scope, source.edited, &micro.0) {
                Some(with_values) => *line = with_values,
                None if pairs.is_in_text() => {}
                None => {
                    return Err(format!(
                        "EcfFile::variableSubstitution: failed : '{}'",
                        shown(line)
                    ));
                }
            },
        }
        bytes += line.len() + 1;
        if bytes > MAX_JOB_BYTES {
            return Err(format!(
                "EcfFile::create_job: the job has more than {MAX_JOB_BYTES} bytes"
            ));
        }
    }
    Ok(lines)
}

/// Removes comments, manuals and directives; what is within `%nopp` stays as it is.
pub(super) fn without_directives(
    lines: Vec<Vec<u8>>,
    scope: &Scope,
    source: Source<'_>,
) -> Result<Vec<Vec<u8>>, String> {
    let script = &source.script.text;
    let context = "EcfFile::remove_comment_manual_and_noop_tokens";
    let mut micro = Micro::of(scope, source.node)?;
    let (mut open, mut kept) = (Vec::new(), Vec::with_capacity(lines.len()));
    for line in lines {
        let is_verbatim = open.contains(&Kind::Verbatim);
        let begun =
            [("manual", Kind::Manual), ("comment", Kind::Comment), ("nopp", Kind::Verbatim)]
                .into_iter()
                .find(|(word, _)| micro.begins(&line, word));
        let stays = if let Some((_, kind)) = begun {
            if kind == Kind::Verbatim && is_verbatim {
                return Err(format!("{context}: failed Embedded nopp are not allowed {script}"));
            }
            open.push(kind);
            is_verbatim
        } else if micro.begins(&line, "end") {
            match open.pop() {
                Some(kind) => is_verbatim && kind != Kind::Verbatim,
                None => return Err(format!("{context}: failed unpaired %end")),
            }
        } else if !is_verbatim && micro.begins(&line, "ecfmicro") {
            micro = Micro::of_line(&line, script)
                .map_err(|why| format!("{context}: failed : {why}"))?;
            false
        } else {
            is_verbatim || open.is_empty()
        };
        if stays {
            kept.push(line);
        }
    }
    match open.last() {
        None => Ok(kept),
        Some(kind) => {
            let kind = match kind {
                Kind::Verbatim => "nopp",
                Kind::Comment => "comment",
                Kind::Manual => "manual",
            };
            Err(format!(
                "{context}: failed Unterminated {kind}. Matching 'end' is missing, in {script}"
            ))
        }
    }
}
