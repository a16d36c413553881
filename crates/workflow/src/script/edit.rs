//! What a user sees and edits of a script: it with its includes, behind the variables that it uses.

use std::collections::BTreeMap;

use super::job::{Pairs, Seen, read, substituted, with_includes, without_directives};
use super::substitute::{MAX_LINE_BYTES, find};
use super::{Files, Micro, Scope, Source, shown};

/// Values may name variables in their turn; beyond this many the line is taken for endless.
const MAX_VALUES: usize = 101;

/// Variables whose names contain one of these are another at each try, or are none of a user's.
const HIDDEN: [&str; 6] = ["ECF_TRYNO", "ECF_JOB", "ECF_PASS", "ECF_PORT", "ECF_HOST", "ECF_NAME"];

/// Neither are these shown.
const GENERATED: [&str; 4] = ["TASK", "FAMILY", "FAMILY1", "SUITE"];

/// The script as it is, behind the variables that it and its includes use.
///
/// # Errors
/// When it or an include can't be read, or a variable has no value.
pub fn edit<F: Files>(files: &F, scope: &Scope, source: Source<'_>) -> Result<Vec<u8>, String> {
    let context = "EcfFile::edit_used_variables";
    let lines = read(files, source, context)?;
    let with_includes = with_includes(files, scope, (source, lines.clone()), context)?;
    let mut text = used_variables(&with_includes, scope, source)?;
    append(&mut text, &lines);
    Ok(text)
}

/// The script with its includes, behind the variables that it uses.
///
/// # Errors
/// As [`edit`].
pub fn pre_process<F: Files>(
    files: &F,
    scope: &Scope,
    source: Source<'_>,
) -> Result<Vec<u8>, String> {
    let context = "EcfFile::pre_process";
    let lines = read(files, source, context)?;
    let lines = with_includes(files, scope, (source, lines), context)?;
    let mut text = used_variables(&lines, scope, source)?;
    append(&mut text, &lines);
    Ok(text)
}

/// A user's own text as the job that would be made of it. As in ecFlow, values are put in last, so
/// that `%nopp` keeps none out.
///
/// # Errors
/// When an include can't be read, or a variable has no value.
pub fn pre_process_own<F: Files>(
    files: &F,
    scope: &Scope,
    source: Source<'_>,
) -> Result<Vec<u8>, String> {
    let context = "EcfFile::pre_process_user_file";
    let lines = read(files, source, context)?;
    let lines = with_includes(files, scope, (source, lines), context)?;
    let lines = without_directives(lines, scope, source)?;
    let lines = substituted(lines, scope, source)?;
    let mut text = Vec::new();
    append(&mut text, &lines);
    Ok(text)
}

fn append(text: &mut Vec<u8>, lines: &[Vec<u8>]) {
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
}

/// The variables that lines use, with their values, as a comment of the script; nothing where they
/// use none.
fn used_variables(lines: &[Vec<u8>], scope: &Scope, source: Source<'_>) -> Result<Vec<u8>, String> {
    let own = Micro::of(scope, source.node)?;
    let mut micro = own.clone();
    let mut pairs = Pairs::default();
    let mut found = BTreeMap::new();
    let mut failed = String::new();
    for line in lines {
        match pairs.line(line, &micro)? {
            Seen::Directive => {}
            _ if pairs.is_verbatim() => {}
            Seen::Micro => micro = Micro::of_line(line, &source.script.text)?,
            Seen::Line if !add_used(line, scope, &micro, &mut found) && !pairs.is_in_text() => {
                let (line, mark) = (shown(line), shown(&micro.0));
                failed.push_str(&format!("Variable find failed for '{line}'  microChar='{mark}' "));
            }
            Seen::Line => {}
        }
    }
    if !failed.is_empty() {
        let what = "EcfFile::get_used_variables: Extract used variables failed";
        return Err(format!("{what} : {failed}"));
    }
    let mut text = Vec::new();
    if found.is_empty() {
        return Ok(text);
    }
    text.extend_from_slice(&own.0);
    text.extend_from_slice(b"comment - ecf user variables\n");
    let is_shown = |name: &str| {
        !HIDDEN.iter().any(|hidden| name.contains(hidden)) && !GENERATED.contains(&name)
    };
    for (name, value) in found.iter().filter(|(name, _)| is_shown(name)) {
        text.extend_from_slice(format!("{name} = {value}\n").as_bytes());
    }
    text.extend_from_slice(&own.0);
    text.extend_from_slice(b"end - ecf user variables\n");
    Ok(text)
}

/// Adds what a line uses, values within values, too; whether each has a value.
fn add_used(
    line: &[u8],
    scope: &Scope,
    micro: &Micro,
    found: &mut BTreeMap<String, String>,
) -> bool {
    let mut line = line.to_vec();
    for _ in 0..MAX_VALUES {
        let Some(first) = find(&line, &micro.0, 0) else { return true };
        let inside = first + micro.0.len();
        let Some(second) = find(&line, &micro.0, inside) else { return true };
        if second == inside {
            return true;
        }
        let Ok(name) = std::str::from_utf8(&line[inside..second]) else { return false };
        let value = match name.split_once(':') {
            None => scope.any(name),
            Some((bare, default)) => scope.any(bare).or(Some(default)),
        };
        let Some(value) = value.map(str::to_owned) else { return false };
        found.entry(name.to_owned()).or_insert_with(|| value.clone());
        line.splice(first..second + micro.0.len(), value.into_bytes());
        if line.len() > MAX_LINE_BYTES {
            return false;
        }
    }
    false
}
