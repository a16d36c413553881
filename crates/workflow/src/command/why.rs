//! `loadline workflow why`: what a node waits for. Control plane.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use super::server::{ServerArgs, failure};
use crate::model::{Kind, NodeId, Snapshot, State};
use base::of_many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow why localhost:3141 /x/f/a
  loadline workflow why localhost /x --below 100     what each waiting task of a suite waits for
  loadline workflow why localhost /                  whether commands that hang take all places
  loadline workflow why localhost /x/f/a --json | jq -r '.why[]'

Exit codes: 0 said why, or that nothing holds it; 1 the server can't be reached; 2 no such node.";

/// A node of a server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WhyArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The node's path: /suite/family/task
    #[arg(value_name = "NODE")]
    node: String,
    /// How many waiting tasks below a suite or family are listed
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    below: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The most reasons of one task below a node.
const REASONS: usize = 16;

pub(super) fn run(args: &WhyArgs) -> Outcome {
    let client = args.server.client()?;
    let tree = client.tree().map_err(failure)?;
    let id = find(&tree, &args.node)?;
    let state = tree.node(id).displayed().word();
    let (mut failed, mut is_own) = (None, None);
    let mut of_commands = |path: &str| {
        let is_own = *is_own.get_or_insert_with(|| client.is_own().unwrap_or(false));
        let said = if is_own { client.why_commands(path) } else { Ok(None) };
        said.unwrap_or_else(|why| {
            failed = Some(why);
            None
        })
    };
    let why = tree.why(id, &mut of_commands);
    let tasks = tree.walk(id).filter(|at| *at != id && waits(&tree, *at));
    let below: Vec<NodeId> = tasks.collect();
    let listed: Vec<(String, Vec<String>)> = below
        .iter()
        .take(args.below)
        .map(|id| (tree.path(*id), tree.why_below(*id, &mut of_commands, REASONS)))
        .collect();
    if let Some(why) = failed {
        return Err(failure(why));
    }
    if args.json {
        let tasks: Vec<_> =
            listed.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        let all = json!({
            "schema": 1, "path": tree.path(id), "state": state, "why": why,
            "waiting_below": below.len(), "below": tasks,
        });
        out::print(format_args!("{all}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{} is {state}\n", tree.path(id));
    reasons(&mut text, &why);
    if why.is_empty() && below.is_empty() {
        text.push_str("  nothing holds it\n");
    }
    for (path, why) in &listed {
        let _ = writeln!(text, "{path} waits");
        reasons(&mut text, why);
        if why.is_empty() {
            text.push_str("  for what holds a node above it\n");
        }
    }
    if below.len() > listed.len() {
        let (more, all) = (below.len() - listed.len(), below.len());
        let _ = writeln!(text, "and {more} more {} (--below {all})", of_many(more, "task"));
    }
    out::print(input::plain(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Appends reasons. Further lines of one, as of what a job says, can't be taken for another.
fn reasons(text: &mut String, why: &[String]) {
    for reason in why {
        let _ = writeln!(text, "  {}", reason.replace('\n', "\n      "));
    }
}

fn waits(tree: &Snapshot, id: NodeId) -> bool {
    let node = tree.node(id);
    let waits = [State::Unknown, State::Queued, State::Aborted, State::Submitted];
    node.kind == Kind::Task && waits.contains(&node.state)
}

/// The node of a path.
///
/// # Errors
/// There is none; the error says what there is instead.
pub(super) fn find(tree: &Snapshot, path: &str) -> Result<NodeId, Failure> {
    if let Some(id) = tree.find(path) {
        return Ok(id);
    }
    if !path.starts_with('/') {
        return Err(Failure::Usage(format!("{path:?} is no path: write /suite/family/task")));
    }
    let ends = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    let above = ends
        .into_iter()
        .find_map(|part| if part.is_empty() { Some(NodeId::ROOT) } else { tree.find(part) });
    let above = above.unwrap_or(NodeId::ROOT);
    let names: Vec<&str> = tree.children(above).map(|id| &*tree.node(id).name).take(8).collect();
    let has = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    Err(Failure::Usage(format!("there is no node {path}: {} has {has}", tree.path(above))))
}
