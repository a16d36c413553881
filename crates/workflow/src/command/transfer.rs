//! `loadline workflow load` and `get`: definitions to and from a server. Control plane.

use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use super::server::{ServerArgs, failure};
use super::why::find;
use crate::client::{Client, ClientError, Levels};
use crate::definition::{Style, parse, print, print_attribute, print_cut, print_node};
use crate::model::{ALL_LEVELS, Kind, Marks, NodeId, Snapshot};
use crate::protocol::{Command, Encoding, NodeCommand, ServerCommand};
use base::many;

const LOAD_EXAMPLES: &str = "\
Examples:
  loadline workflow load localhost:3141 x.def
  loadline workflow load localhost x.def --begin
  loadline workflow load localhost x.def --force     in place of suites of the same name

The definition is checked first, and refused with its line where ecFlow's parser would.";

/// A definition, and where to.
#[derive(Debug, clap::Args)]
#[command(after_help = LOAD_EXAMPLES)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Take the place of suites of the same name, with what runs in them
    #[arg(long)]
    force: bool,
    /// Begin its suites, too
    #[arg(long)]
    begin: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn load(args: &LoadArgs) -> Outcome {
    let client = args.server.client()?;
    let (definition, examined) = input::read(&args.file)?;
    let tree: &Snapshot = &examined.tree;
    let suites: Vec<String> = tree.suites().map(|id| tree.node(id).name.to_string()).collect();
    let file = args.file.display().to_string();
    if suites.is_empty() {
        return Err(Failure::Usage(format!("{file}: there is no suite in it")));
    }
    let command = Command::Load { force: args.force, definition, file };
    client.command(command).map_err(|why| match why {
        ClientError::Refused(text) if text.contains("already exist") => failure(
            ClientError::Refused(format!("{text}: --force takes the place of such a suite")),
        ),
        why => failure(why),
    })?;
    for suite in suites.iter().filter(|_| args.begin) {
        let command = Command::Begin { suite: suite.clone(), force: false };
        client.command(command).map_err(failure)?;
    }
    if args.begin {
        note_halted(&client);
    }
    let nodes = tree.count();
    if args.json {
        let all = json!({"schema": 1, "suites": suites, "nodes": nodes, "begun": args.begin});
        out::print(format_args!("{all}\n"))?;
    } else {
        let begun = if args.begin { ", begun" } else { "" };
        let names = suites.join(", ");
        let nodes = many(nodes, "node");
        out::print(format_args!("{names}: {nodes} at {}{begun}\n", client.address()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes that nothing of what has begun runs, where the server is halted or shut down.
fn note_halted(client: &Client) {
    // What is loaded has begun, whether it can be asked or not.
    let Ok(stats) = client.text(Command::Server(ServerCommand::StatsText)) else { return };
    let status = stats.lines().find_map(|line| line.trim_start().strip_prefix("Status"));
    let status = status.unwrap_or_default().trim();
    if ["HALTED", "SHUTDOWN"].contains(&status) {
        out::note(format!(
            "the server is {status}: nothing runs until `ecflow_client --restart` has it go on"
        ));
    }
}

const GET_EXAMPLES: &str = "\
Examples:
  loadline workflow get localhost:3141 > all.def
  loadline workflow get localhost /x/f --style state     with states
  loadline workflow get localhost --style migrate        as a checkpoint has it
  loadline workflow get localhost --level 1              the suites alone
  loadline workflow get localhost /x --level 2           /x and two levels below it
  loadline workflow get localhost /x --json | jq -r 'select(.state == \"aborted\") | .path'

With --level or --encoding a server of this program sends only what is asked for, in its own
protocol; of ecFlow's servers the whole is taken, and cut here. A node whose children are left out
has \"# part:cut\" behind its name, one above what was asked for \"# part:bare,others\". The edit
history is not among it.";

/// How a definition is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Printed {
    /// As it is loaded
    Defs,
    /// With states
    State,
    /// As a checkpoint has it: states, history, what is archived
    Migrate,
}

/// A server, or a node of one.
#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub(super) struct GetArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// A node, with all below it; without one all suites
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// What is printed of it
    #[arg(long, value_name = "STYLE", default_value = "defs")]
    style: Printed,
    /// Only as many levels below the node: 0 is it alone. Without a node it is the server, 1 the
    /// suites, 2 their children
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// How a server of this program writes what it sends
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoded>,
    /// Print one JSON object for each node, a line each
    #[arg(long)]
    json: bool,
}

/// How trees are sent.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Encoded {
    /// As text
    Text,
    /// As compact binary
    Binary,
}

impl Encoded {
    /// What is asked for; binary unless it is stated.
    pub(super) fn encoding(stated: Option<Self>) -> Encoding {
        match stated {
            Some(Self::Text) => Encoding::Text,
            Some(Self::Binary) | None => Encoding::Binary,
        }
    }
}

/// What is printed: a tree, and what of its nodes isn't in it.
struct Got {
    tree: Snapshot,
    marks: Marks,
}

fn got(args: &GetArgs) -> Result<Got, Failure> {
    let client = args.server.client()?;
    if args.level.is_some() || args.encoding.is_some() {
        let (level, encoding) =
            (args.level.unwrap_or(ALL_LEVELS), Encoded::encoding(args.encoding));
        let path = args.node.as_deref().unwrap_or("/");
        let levels = Levels::new(client, encoding, path, level).map_err(failure)?;
        return Ok(Got { tree: levels.tree().snapshot(), marks: levels.marks().clone() });
    }
    let command = Command::Node(NodeCommand::Migrate, String::new());
    let text = client.text(command).map_err(failure)?;
    let parsed = parse(&text, client.address()).map_err(Failure::from)?;
    Ok(Got { tree: parsed.tree.snapshot(), marks: Marks::new() })
}

pub(super) fn get(args: &GetArgs) -> Outcome {
    let Got { tree, marks } = &got(args)?;
    let from = args.node.as_deref().map(|path| find(tree, path)).transpose()?;
    if args.json {
        let mut output = BufWriter::with_capacity(1 << 16, out::stream());
        for id in tree.walk(from.unwrap_or(NodeId::ROOT)) {
            if tree.node(id).kind != Kind::Root {
                writeln!(output, "{}", node(tree, id, marks))?;
            }
        }
        output.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = match args.style {
        Printed::Defs => Style::Defs,
        Printed::State => Style::State,
        Printed::Migrate => Style::Migrate,
    };
    // As a checkpoint has it, it isn't indented.
    let is_indented = style != Style::Migrate;
    let text = match from.filter(|id| *id != NodeId::ROOT) {
        _ if !marks.is_empty() => {
            let mut text = String::new();
            print_cut(tree, marks, (style, is_indented), &mut |piece| text.push_str(piece));
            text
        }
        None => print(tree, style, is_indented),
        Some(id) => print_node(tree, id, style, is_indented),
    };
    if tree.count() == 0 && args.level != Some(0) {
        out::note("the server has no suite");
    }
    let is_read = std::io::stdout().is_terminal();
    out::print(if is_read { input::plain(&text) } else { text })?;
    Ok(ExitCode::SUCCESS)
}

fn node(tree: &Snapshot, id: NodeId, marks: &Marks) -> serde_json::Value {
    let node = tree.node(id);
    let attributes = node.attributes.iter().map(|one| print_attribute(tree, one));
    let attributes: Vec<String> = attributes.map(|line| line.trim().to_owned()).collect();
    let is_cut = marks.get(&id).is_some_and(|mark| mark.is_cut);
    json!({
        "path": tree.path(id), "kind": node.kind.word(), "cut": is_cut,
        "state": node.displayed().word(), "flags": node.flags.to_string(),
        "try": node.try_no(), "attributes": attributes,
    })
}
