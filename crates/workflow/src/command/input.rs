//! What commands read: definitions, and the time. Control plane.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use service::Failure;

use crate::binary;
use crate::definition::{Examined, examine};
use crate::model::{Instant, Moment, Rules, ServerState, Tree, Variable};
use crate::server::Environment;

/// The largest definition that is read, in bytes.
const DEFINITION_LIMIT: u64 = 1 << 30;

/// The text of a definition.
pub(super) fn text(file: &Path) -> Result<String, Failure> {
    let bytes = base::read_bytes(file, DEFINITION_LIMIT).map_err(Failure::usage)?;
    if binary::is_binary(&bytes) {
        return Err(Failure::Usage(format!(
            "{}: this is the binary encoding of a definition (LWT1, as of print --style binary), \
             and text is read here: name the definition that it was printed from",
            file.display()
        )));
    }
    base::into_text(file, bytes).map_err(Failure::usage)
}

/// The definition of a file, which has to be right.
pub(super) fn definition(file: &Path) -> Result<Examined, Failure> {
    read(file).map(|(_, examined)| examined)
}

/// The same with its text, read once: a pipe has no second text, and what is checked is what is
/// used.
pub(super) fn read(file: &Path) -> Result<(String, Examined), Failure> {
    let text = text(file)?;
    let examined = examine(&text, &file.display().to_string());
    match examined.faults.first() {
        None => Ok((text, examined)),
        Some(fault) => Err(Failure::Usage(fault.to_string())),
    }
}

/// A text of a server's as people read it: a label that any job sets must not steer the terminal.
/// Lines and tabs stay.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        if one.is_control() && one != '\n' && one != '\t' {
            shown.extend(one.escape_default());
        } else {
            shown.push(one);
        }
    }
    shown
}

/// The time of this host in UTC, as calendars have it.
pub(super) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::seconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// `2026-12-24T10:00:00`.
pub(super) fn iso(at: Instant) -> String {
    let ((year, month, day), time) = (at.date().parts(), at.time_of_day());
    format!("{year:04}-{month:02}-{day:02}T{time}")
}

/// The variables that a server has whose home is the current folder.
pub(super) fn variables() -> Result<Vec<Variable>, Failure> {
    variables_of(Path::new("."))
}

fn variables_of(home: &Path) -> Result<Vec<Variable>, Failure> {
    const PORT: u16 = 3141;
    let environment = Environment::new(home, PORT, 60, |name| std::env::var(name).ok());
    let variables = environment.map_err(Failure::Usage)?.variables().into_iter();
    Ok(variables.map(|(name, value)| Variable { name: name.into(), value: value.into() }).collect())
}

/// The suites of a definition as a halted server with this home would have them, begun.
pub(super) fn begun(examined: &Examined, home: &Path) -> Result<Tree, Failure> {
    let mut tree = Tree::default();
    tree.server_mut().variables = variables_of(home)?;
    tree.server_mut().state = ServerState::Halted;
    let mut rules = Rules::new(&mut tree, Moment { now: now(), entropy: 0 });
    rules.load(&examined.tree, false).map_err(Failure::usage)?;
    rules.begin_all(true).map_err(Failure::usage)?;
    let _ = rules.finish();
    Ok(tree)
}
