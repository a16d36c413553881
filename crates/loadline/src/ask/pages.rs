//! `loadline help`: the help of a command, or a document that this program carries.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use super::{explain, markdown};
use crate::exit::Failure;
use crate::out;

/// Arguments of `loadline help`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline help run            the options of a command
  loadline help suites         everything that a suite may say
  loadline help verdicts       what better, worse, same and can't tell mean
  PAGER=cat loadline help ledger")]
pub(crate) struct HelpArgs {
    /// A command, or a document; without one both are listed
    topic: Vec<String>,
}

/// A document that is part of this program.
struct Document {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

impl Document {
    fn line(&self) -> String {
        format!("  {:<18} {}\n", self.name, self.about)
    }
}

macro_rules! documents {
    ($($name:literal $about:literal,)*) => {
        &[$(Document {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../docs/", $name, ".md")),
        }),*]
    };
}

/// In reading order.
#[rustfmt::skip]
static DOCUMENTS: &[Document] = documents![
    "first-question" "a question without a file",
    "tutorial" "your own service in ten lines",
    "glossary" "the words of suites and reports",
    "suites" "everything that a suite may say",
    "verdicts" "what a verdict means, and when it is given",
    "why-cant-it-tell" "what to do when there is none",
    "limits" "what gives way first",
    "reports" "how to read a report",
    "json" "what --json prints",
    "ledger" "the file that keeps every run",
    "ladder" "changes that build on each other",
    "ci" "a comparison as a gate of changes",
    "doctor" "whether a host is fit to measure on",
    "cost" "what an operation costs",
    "http" "web services as targets",
    "programs" "programs that load, and batches",
    "in-process" "libraries, without a socket",
    "adding-a-service" "a protocol of your own",
    "records-load" "live records under load",
    "workflow-load" "workflows under load",
    "workflow" "running workflows",
    "workflow-runners" "how workflows start jobs",
    "workflow-history" "every change of a state in SQLite",
    "conditions" "conditions over HTTP, and under load",
    "nopayloaddb" "NoPayloadDB's requests to conditions",
    "rpc-load" "remote calls under load",
    "rpc-why" "why a call takes as long as it does",
    "rpc-codecs" "codecs of messages",
    "compatibility" "what a release promises",
    "seeds" "five measurements, done again",
    "design-loop" "design: the loop of a server",
    "design-store" "design: the store of a cache",
    "design-segments" "design: how conditions lie on disk",
    "design-tier" "design: several servers of conditions",
];

pub(crate) fn run(args: &HelpArgs, mut command: clap::Command) -> Result<ExitCode, Failure> {
    command.build();
    let text = match &args.topic[..] {
        [] => {
            format!("{}\nDocuments (loadline help NAME):\n{}", command.render_long_help(), list())
        }
        [name] => match document(name) {
            Some(document) => {
                let text = markdown::wrapped(document.text, markdown::width());
                text + &options(&command, document.name)
            }
            None => of_command(command, &args.topic)? + &about(name),
        },
        path => of_command(command, path)?,
    };
    show(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn document(name: &str) -> Option<&'static Document> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// Where the options of the command are that a document is called like.
fn options(command: &clap::Command, name: &str) -> String {
    match command.find_subcommand(name) {
        Some(_) => format!("\nOptions: loadline {name} --help\n"),
        None => String::new(),
    }
}

/// The documents about a command that none is called like.
fn about(command: &str) -> String {
    let own = |one: &&Document| one.name.split('-').next() == Some(command);
    let lines = DOCUMENTS.iter().filter(own).map(Document::line).collect::<String>();
    if lines.is_empty() { lines } else { format!("\nDocuments (loadline help NAME):\n{lines}") }
}

fn list() -> String {
    DOCUMENTS.iter().map(Document::line).collect()
}

/// The help of the command at this path.
fn of_command(mut command: clap::Command, path: &[String]) -> Result<String, Failure> {
    for name in path {
        let subcommands = command.get_subcommands().filter(|one| !one.is_hide_set());
        let known: Vec<String> = subcommands.map(|one| one.get_name().to_owned()).collect();
        let Some(found) = command.find_subcommand(name) else {
            let documents = DOCUMENTS.iter().map(|document| document.name);
            let all = known.iter().map(String::as_str).chain(documents);
            let near = explain::nearest(name, all, 3);
            let near = match near.is_empty() {
                true => "`loadline help` lists both".to_owned(),
                false => format!("near it: {}", near.join(", ")),
            };
            let message = format!("there is no command or document \"{}\"; {near}", path.join(" "));
            return Err(Failure::Usage(message));
        };
        command = found.clone();
    }
    Ok(command.render_long_help().to_string())
}

/// Prints the text, through a pager where a terminal is too low for it.
fn show(text: &str) -> Result<(), Failure> {
    let out = std::io::stdout();
    let rows = rustix::termios::tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_row));
    if out.is_terminal() && text.lines().count() >= rows.max(1) && paged(text) {
        return Ok(());
    }
    Ok(out::print(text)?)
}

/// Shows the text in `$PAGER`, or `less`; returns whether it could be started.
fn paged(text: &str) -> bool {
    let own = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let mut pager = match &own {
        Some(words) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", words]);
            shell
        }
        None => Command::new("less"),
    };
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let Ok(mut child) = pager.stdin(Stdio::piped()).spawn() else { return false };
    // A pager may be left before the end of the text.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
    child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        for entry in std::fs::read_dir(folder).expect("docs") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            let is_listed = name == "README.md" || document(&name).is_some();
            assert!(!name.ends_with(".md") || is_listed, "{name}: add it to DOCUMENTS");
        }
    }

    #[test]
    fn every_document_fits_a_terminal_but_for_code_and_long_words() {
        for document in DOCUMENTS {
            let page = markdown::wrapped(document.text, 80);
            let is_wide = |line: &&str| {
                let is_code = line.starts_with("    ") || line.starts_with('#');
                !is_code && line.chars().count() > 80 && line.trim().contains(' ')
            };
            let wide: Vec<&str> = page.lines().filter(is_wide).collect();
            assert!(wide.iter().all(|line| line.starts_with("- ")), "{}: {wide:?}", document.name);
            assert!(page.starts_with("# "), "{}", document.name);
        }
    }
}
