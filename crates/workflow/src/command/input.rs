//! What commands read: definitions, and the time. Control plane.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use service::Failure;

use crate::definition::Examined;
use crate::model::{Instant, Moment, Rules, ServerState, Tree, Variable};
use crate::server::Environment;

/// The largest definition that is read, in bytes.
const DEFINITION_LIMIT: u64 = 1 << 30;

/// The text of a definition.
pub(super) fn text(file: &Path) -> Result<String, Failure> {
    base::read_text(file, DEFINITION_LIMIT).map_err(Failure::usage)
}

/// The server's time, as its calendars have it.
pub(super) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::seconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The suites of a definition as a halted server with this home would have them, begun.
pub(super) fn begun(examined: &Examined, home: &Path) -> Result<Tree, Failure> {
    let port = 3141;
    let environment = Environment::new(home, port, 60, |name| std::env::var(name).ok());
    let environment = environment.map_err(Failure::Usage)?;
    let mut tree = Tree::default();
    let variables = environment.variables().into_iter();
    tree.server_mut().variables = variables
        .map(|(name, value)| Variable { name: name.into(), value: value.into() })
        .collect();
    tree.server_mut().state = ServerState::Halted;
    let mut rules = Rules::new(&mut tree, Moment { now: now(), entropy: 0 });
    rules.load(&examined.tree, false).map_err(Failure::usage)?;
    rules.begin_all(true).map_err(Failure::usage)?;
    let _ = rules.finish();
    Ok(tree)
}
