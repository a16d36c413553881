//! The text of a definition by formatted output, a line at a time, as a program prints it that
//! doesn't mind the time: what own formatting is measured against. Only what generated
//! definitions have is known.

use std::io::{self, Write};

use crate::definition::{END, VERSION};
use crate::model::{Attribute, Condition, Displayed, Kind, Late, NodeId, Over, Snapshot};

/// Prints the whole tree.
///
/// # Errors
/// The stream's; and when the tree has what generated definitions don't have.
pub(super) fn print(tree: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "#{VERSION}")?;
    for suite in tree.suites() {
        node(tree, suite, out)?;
    }
    write!(out, "{END}")
}

fn node(tree: &Snapshot, id: NodeId, out: &mut impl Write) -> io::Result<()> {
    let node = tree.node(id);
    writeln!(out, "{} {}", node.kind.word(), node.name)?;
    if node.default != Displayed::Queued {
        writeln!(out, "defstatus {}", node.default.word())?;
    }
    for attribute in node.attributes.iter() {
        self::attribute(attribute, out)?;
    }
    // Generated families are three deep.
    tree.children(id).try_for_each(|child| self::node(tree, child, out))?;
    match node.kind {
        Kind::Task => Ok(()),
        _ => writeln!(out, "end{}", node.kind.word()),
    }
}

fn attribute(attribute: &Attribute, out: &mut impl Write) -> io::Result<()> {
    match attribute {
        Attribute::Late(one) => late(one, out),
        Attribute::Trigger(one) | Attribute::Complete(one) => condition(attribute.word(), one, out),
        Attribute::Variable(one) => writeln!(out, "edit {} '{}'", one.name, one.value),
        Attribute::Limit(one) => writeln!(out, "limit {} {}", one.name, one.max),
        Attribute::InLimit(one) => writeln!(out, "inlimit {}:{}", one.path, one.name),
        Attribute::Label(one) => writeln!(out, "label {} \"{}\"", one.name, one.value),
        Attribute::Meter(one) => {
            writeln!(out, "meter {} {} {} {}", one.name, one.min, one.max, one.threshold)
        }
        Attribute::Event(one) => writeln!(out, "event {}", one.name),
        Attribute::Time(one) => writeln!(out, "time {}", one.start),
        Attribute::Repeat(one) => match &one.over {
            Over::Date(over) => {
                let (start, end, delta) = (over.start, over.end, over.delta);
                writeln!(out, "repeat date {} {start} {end} {delta}", one.name)
            }
            _ => unknown(attribute),
        },
        _ => unknown(attribute),
    }
}

fn late(late: &Late, out: &mut impl Write) -> io::Result<()> {
    write!(out, "late")?;
    if let Some(submitted) = late.submitted {
        write!(out, " -s +{submitted}")?;
    }
    if let Some(complete) = late.complete {
        write!(out, " -c {}{complete}", if late.complete_relative { "+" } else { "" })?;
    }
    writeln!(out)
}

fn condition(word: &str, condition: &Condition, out: &mut impl Write) -> io::Result<()> {
    let parts = &condition.expression.parts;
    parts.iter().try_for_each(|part| writeln!(out, "{word} {}", part.text))
}

fn unknown(attribute: &Attribute) -> io::Result<()> {
    Err(io::Error::other(format!("{} is in no generated definition", attribute.word())))
}
