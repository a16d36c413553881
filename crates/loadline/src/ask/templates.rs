//! `loadline new`: suites to begin with.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;

use crate::exit::Failure;
use crate::out;

/// Arguments of `loadline new`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Templates:
  http      a web service that the lab starts, and the pages that it is asked for
  cache     this program's cache, beside memcached where it is installed
  records   live records over pvAccess
  program   programs that are run to their end: how long they take
  compare   two versions of one service, side by side

Example:
  loadline new http > mine.toml
  loadline plan mine.toml
  loadline run mine.toml")]
pub(crate) struct NewArgs {
    /// What is measured
    // Where it is missing, clap names no more than this.
    #[arg(value_name = "http|cache|records|program|compare",
        value_parser = PossibleValuesParser::new(TEMPLATES.iter().map(|one| one.0)))]
    template: String,
}

/// Each template with its name.
static TEMPLATES: &[(&str, &str)] = &[
    ("http", include_str!("templates/http.toml")),
    ("cache", include_str!("templates/cache.toml")),
    ("records", include_str!("templates/records.toml")),
    ("program", include_str!("templates/program.toml")),
    ("compare", include_str!("templates/compare.toml")),
];

pub(crate) fn run(args: &NewArgs) -> Result<ExitCode, Failure> {
    let template = TEMPLATES.iter().find(|(name, _)| *name == args.template);
    out::print(template.map_or("", |(_, text)| text))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lab::plan::Plan;

    use super::*;

    #[test]
    fn every_template_plans() {
        for (name, text) in TEMPLATES {
            let registry = crate::registry::registry();
            let plan = Plan::parse(Path::new(name), (*text).to_owned(), &[], registry);
            let plan = plan.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert!(plan.shortest().seconds() < 60.0, "{name} takes {}", plan.shortest());
            // A host may have a single core.
            let notes = plan.notes.iter().filter(|note| !note.contains("the only one here"));
            assert_eq!(notes.collect::<Vec<_>>(), Vec::<&String>::new(), "{name}");
        }
    }
}
