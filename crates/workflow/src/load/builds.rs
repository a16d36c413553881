//! A definition with the counts of ECMWF's `metabuilder.def`, by which it measures how fast jobs
//! are made: 28 suites, one for each package that is built, tested and installed, with 4,559 tasks,
//! of which 4,553 have a script. It is the same each time. Suites are suspended at first, so that
//! no job starts once they have begun.
//!
//! Values name variables of nearer nodes, as there; a family's tasks wait for each other.

use std::io::{self, Write};
use std::path::Path;

use super::spread::Spread;

const SUITES: u64 = 28;
const FAMILIES: u64 = 637;
const TASKS: u64 = 4_559;
const NODES: u64 = SUITES + FAMILIES + TASKS;
const VARIABLES: u64 = 13_648;
const TRIGGERS: u64 = 3_540;
const LABELS: u64 = 4_602;
const LIMITS: u64 = 21;
const INLIMITS: u64 = 20;
const CRONS: u64 = 15;
/// With those of the suites.
const DEFSTATUSES: u64 = 294;
/// Tasks without a script.
const DUMMIES: u64 = 6;

/// Families come in blocks: one, and in it the others.
const BLOCK: u64 = 5;

/// What a family's tasks are called; a script each.
const STEPS: [&str; 8] =
    ["configure", "build", "check", "test", "install", "package", "document", "deploy"];

/// Names of variables are taken in turn, so that nearer nodes have other values of the same.
const NAMES: u64 = 24;

/// What is written, and how much of everything is left for what follows.
struct Writer<W> {
    out: W,
    depth: usize,
    variables: Spread,
    variable: u64,
    limits: Spread,
    inlimits: u64,
    tasks: Spread,
    crons: Spread,
    dummies: Spread,
    labels: Spread,
    triggers: Spread,
    defstatuses: Spread,
}

/// Writes the definition.
///
/// # Errors
/// When it can't be written.
pub fn generate_builds(out: impl Write) -> io::Result<()> {
    let behind_others = TASKS - FAMILIES;
    let mut writer = Writer {
        out,
        depth: 0,
        variables: Spread::new(VARIABLES - DUMMIES, NODES),
        variable: 0,
        limits: Spread::new(LIMITS, SUITES),
        inlimits: INLIMITS,
        tasks: Spread::new(TASKS, FAMILIES),
        crons: Spread::new(CRONS, FAMILIES),
        dummies: Spread::new(DUMMIES, FAMILIES),
        labels: Spread::new(LABELS - TASKS, FAMILIES),
        triggers: Spread::new(TRIGGERS, behind_others),
        defstatuses: Spread::new(DEFSTATUSES - SUITES, behind_others),
    };
    let mut families = Spread::new(FAMILIES, SUITES);
    for suite in 0..SUITES {
        writer.suite(suite, families.take())?;
    }
    writer.out.flush()
}

/// Writes the scripts of its tasks, which are found below ECF_HOME by their names, and what they
/// include.
///
/// # Errors
/// When they can't be written.
pub fn write_scripts(folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join("head.h"), HEAD)?;
    std::fs::write(folder.join("tail.h"), "trap - EXIT\necflow_client --complete\n")?;
    let values: String = (0..8).map(|place| format!(" %VAR_{place}:none%")).collect();
    STEPS.iter().try_for_each(|step| {
        let text = format!(
            "%include <head.h>\n%manual\nHow to {step}.\n%end\necho %TASK% of %SUITE%, \
             %FAMILY%:{values}\necho 100%% of it\n%include <tail.h>\n"
        );
        std::fs::write(folder.join(format!("{step}.ecf")), text)
    })
}

const HEAD: &str = "\
#!/bin/sh
set -e
export ECF_HOST=%ECF_HOST% ECF_PORT=%ECF_PORT% ECF_NAME=%ECF_NAME% ECF_PASS=%ECF_PASS%
export ECF_TRYNO=%ECF_TRYNO% ECF_RID=$$
trap 'ecflow_client --abort=trap; exit 0' EXIT
ecflow_client --init=$$
";

impl<W: Write> Writer<W> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.out, "{:width$}{text}", "", width = self.depth * 2)
    }

    /// Ends families until the next node lies at `depth`.
    fn close(&mut self, depth: usize) -> io::Result<()> {
        while self.depth > depth {
            self.depth -= 1;
            self.line(format_args!("endfamily"))?;
        }
        Ok(())
    }

    fn suite(&mut self, suite: u64, families: u64) -> io::Result<()> {
        self.line(format_args!("suite package{suite:02}"))?;
        self.depth = 1;
        self.line(format_args!("defstatus suspended"))?;
        self.variables()?;
        let has_limit = self.limits.take() > 0;
        if has_limit {
            self.line(format_args!("limit jobs 20"))?;
        }
        for family in 0..families {
            let is_outer = family % BLOCK == 0;
            self.close(if is_outer { 1 } else { 2 })?;
            self.family(family, has_limit && family == 0)?;
        }
        self.close(1)?;
        self.depth = 0;
        self.line(format_args!("endsuite"))
    }

    fn family(&mut self, family: u64, may_hold: bool) -> io::Result<()> {
        self.line(format_args!("family f{family}"))?;
        self.depth += 1;
        self.variables()?;
        if may_hold && self.inlimits > 0 {
            self.inlimits -= 1;
            self.line(format_args!("inlimit jobs"))?;
        }
        if self.labels.take() > 0 {
            self.line(format_args!("label version \"\""))?;
        }
        let tasks = usize::try_from(self.tasks.take()).unwrap_or(STEPS.len());
        let (cron, dummy) = (self.crons.take(), self.dummies.take());
        for (place, step) in STEPS.iter().take(tasks).enumerate() {
            self.line(format_args!("task {step}"))?;
            self.depth += 1;
            if place > 0 {
                self.behind(STEPS[place - 1])?;
            } else if cron > 0 {
                self.line(format_args!("cron 23:00"))?;
            }
            if place == 0 && dummy > 0 {
                self.line(format_args!("edit ECF_DUMMY_TASK ''"))?;
            }
            self.variables()?;
            self.line(format_args!("label info \"\""))?;
            self.depth -= 1;
        }
        Ok(())
    }

    /// What a task has that is behind another one.
    fn behind(&mut self, before: &str) -> io::Result<()> {
        if self.defstatuses.take() > 0 {
            self.line(format_args!("defstatus complete"))?;
        }
        if self.triggers.take() > 0 {
            self.line(format_args!("trigger {before} == complete"))?;
        }
        Ok(())
    }

    /// The variables of the next node.
    fn variables(&mut self) -> io::Result<()> {
        for _ in 0..self.variables.take() {
            let number = self.variable;
            let value = format_args!("%ECF_HOME%/%SUITE%/%FAMILY:none%/{number:05}");
            self.line(format_args!("edit VAR_{} '{value}'", number % NAMES))?;
            self.variable += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;

    #[test]
    fn it_has_the_counts_of_metabuilder() {
        let mut text = Vec::new();
        generate_builds(&mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        let lines = |word: &str| {
            let begins = |line: &&str| line.trim_start().starts_with(word);
            text.lines().filter(begins).count() as u64
        };
        for (word, count) in [
            ("suite ", SUITES),
            ("family ", FAMILIES),
            ("task ", TASKS),
            ("edit ", VARIABLES),
            ("edit ECF_DUMMY_TASK ", DUMMIES),
            ("trigger ", TRIGGERS),
            ("label ", LABELS),
            ("limit ", LIMITS),
            ("inlimit ", INLIMITS),
            ("cron ", CRONS),
            ("defstatus ", DEFSTATUSES),
        ] {
            assert_eq!(lines(word), count, "{word}");
        }
        let parsed = parse(&text, "x.def").expect("a definition");
        assert_eq!(parsed.tree.count() as u64, NODES);
        assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    }
}
