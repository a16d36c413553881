//! `loadline workflow stats`: what a definition consists of, and what it costs. Control plane.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use base::grouped;
use serde_json::json;
use service::{Outcome, out};

use super::input;
use crate::model::{Displayed, Kind, Memory, NodeId, Snapshot};

const EXAMPLES: &str = "\
Examples:
  loadline workflow stats 3199.def
  loadline workflow stats 3199.def --json | jq .counts.trigger

Memory is that of this program's server: a node, and each attribute that it has, with what only
it refers to. Texts, expressions and lists that several share are counted once, in a row of their
own.";

/// A definition.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatsArgs {
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The rows of attributes, each with its keyword, in the order of ecFlow's own performance tests.
const ROWS: [(&str, &str); 18] = [
    ("variables", "edit"),
    ("time", "time"),
    ("today", "today"),
    ("date", "date"),
    ("day", "day"),
    ("cron", "cron"),
    ("late", "late"),
    ("event", "event"),
    ("meter", "meter"),
    ("label", "label"),
    ("trigger", "trigger"),
    ("complete", "complete"),
    ("limit", "limit"),
    ("inlimit", "inlimit"),
    ("autocancel", "autocancel"),
    ("repeat", "repeat"),
    ("verify", "verify"),
    ("zombie", "zombie"),
];

pub(super) fn run(args: &StatsArgs) -> Outcome {
    let (text, examined) = input::read(&args.file)?;
    let tree: &Snapshot = &examined.tree;
    let counts = counts(tree, text.len());
    let memory = Memory::of(tree);
    if args.json {
        let counts: serde_json::Map<String, serde_json::Value> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        let attributes = memory.attributes.iter().map(|(word, used)| {
            json!({"kind": word, "count": used.count, "bytes": used.bytes, "each": used.each()})
        });
        let attributes: Vec<_> = attributes.collect();
        let shared = json!({"count": memory.shared.count, "bytes": memory.shared.bytes});
        let nodes = json!({
            "count": memory.nodes.count, "bytes": memory.nodes.bytes,
            "each": memory.nodes.each(),
        });
        let all = json!({
            "schema": 1, "counts": counts,
            "memory": {
                "nodes": nodes, "attributes": attributes, "shared": shared,
                "index": memory.index, "total": memory.total(),
            },
        });
        out::print(format_args!("{all}\n"))?;
    } else {
        out::print(shown(&counts, &memory))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn counts(tree: &Snapshot, bytes: usize) -> Vec<(&'static str, usize)> {
    let mut kinds = [0; 5];
    let mut defaults = 0;
    let mut words: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for id in tree.walk(NodeId::ROOT) {
        let node = tree.node(id);
        kinds[node.kind as usize] += 1;
        defaults += usize::from(node.default != Displayed::Queued);
        for attribute in node.attributes.iter() {
            *words.entry(attribute.word()).or_default() += 1;
        }
    }
    let kind = |kind: Kind| kinds[kind as usize];
    let mut rows = vec![
        ("bytes", bytes),
        ("suites", kind(Kind::Suite)),
        ("families", kind(Kind::Family)),
        ("tasks", kind(Kind::Task)),
        ("nodes", tree.count()),
    ];
    for (name, word) in ROWS {
        rows.push((name, words.get(word).copied().unwrap_or(0)));
        if name == "repeat" {
            rows.push(("defstatus", defaults));
        }
    }
    // What that list doesn't have, where there is any.
    for word in ["queue", "generic", "clock", "autoarchive", "autorestore", "aviso", "mirror"] {
        if let Some(count) = words.get(word) {
            rows.push((word, *count));
        }
    }
    rows
}

fn shown(counts: &[(&str, usize)], memory: &Memory) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    for (name, count) in counts {
        let _ = writeln!(text, "{name:<14}{:>14}", grouped(*count as u64));
    }
    let _ = writeln!(text, "\n{:<14}{:>14}{:>16}{:>12}", "memory", "count", "bytes", "each");
    let nodes = std::iter::once(("node", memory.nodes));
    for (word, used) in nodes.chain(memory.attributes.iter().copied()) {
        let (count, bytes, each) =
            (grouped(used.count as u64), grouped(used.bytes as u64), used.each());
        let _ = writeln!(text, "{word:<14}{count:>14}{bytes:>16}{each:>12.1}");
    }
    let (count, bytes) = (grouped(memory.shared.count as u64), grouped(memory.shared.bytes as u64));
    let each = memory.shared.each();
    let _ = writeln!(text, "{:<14}{count:>14}{bytes:>16}{each:>12.1}", "shared");
    let _ = writeln!(text, "{:<14}{:>14}{:>16}", "index", "", grouped(memory.index as u64));
    let _ = writeln!(text, "{:<14}{:>14}{:>16}", "total", "", grouped(memory.total() as u64));
    text
}
