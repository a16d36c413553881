//! Why `--alter` is refused, in ecFlow's words, which name its own functions.

use crate::definition::{parse_expression, print_attribute};
use crate::model::{Attribute, Date, From, NodeId, Over, Repeat, Snapshot, Texts};

use super::check::{references, shown};

/// How ecFlow's functions call what a word stands for: `LimitMax` of `limit_max`.
pub(super) fn title(word: &str) -> String {
    let parts = word.split('_').flat_map(|part| {
        let mut rest = part.chars();
        let first = rest.next().map(|one| one.to_ascii_uppercase());
        first.into_iter().chain(rest)
    });
    parts.collect()
}

/// Of an attribute that a node may have once.
pub(super) fn added_twice(tree: &Snapshot, id: NodeId, attribute: &Attribute) -> String {
    let at = shown(tree, id);
    match attribute {
        Attribute::Late(_) => {
            format!("Add Late failed: A node can only have one Late attribute, see node {at}")
        }
        Attribute::InLimit(_) => {
            format!("Add InLimit failed: Duplicate InLimit see node {at}")
        }
        Attribute::Zombie(rule) => format!(
            "MiscAttrs::addZombie: Node {} already has a zombie attribute of type {}\n",
            tree.path(id),
            rule.kind.word()
        ),
        other => {
            let (what, name) = (other.word(), other.name().map_or("", |name| name.as_str()));
            let title = title(what);
            // Only one of both has a capital there.
            let again = if what == "limit" { title.as_str() } else { what };
            format!(
                "Add {title} failed: Duplicate {again} of name '{name}' already exist for node {at}"
            )
        }
    }
}

/// Of an attribute that isn't there. Of a time ecFlow doesn't say which.
pub(super) fn not_deleted(word: &str, name: &str) -> String {
    match word {
        "variable" => format!("Node::deleteVariable: Cannot find 'user' variable of name {name}"),
        "inlimit" => format!("InLimitMgr::deleteInlimit: Cannot find inlimit: {name}"),
        "event" | "meter" | "label" | "limit" => {
            format!("Node::delete{}: Cannot find {word}: {name}", title(word))
        }
        _ => format!("Node::delete_{word}: Cannot find {word} attribute: {word} {name}"),
    }
}

/// Of an expression that can't be read, or names what isn't there; `why` of one that is wrong
/// otherwise.
pub(super) fn no_condition(
    tree: &Snapshot,
    id: NodeId,
    (word, text): (&str, &str),
    why: String,
) -> String {
    let Ok(program) = parse_expression(text, &mut Texts::default()) else {
        return format!("Node::change{}: {why}", title(word));
    };
    match references(&From { tree, node: id }, &program, (word, text)) {
        Err(missing) => format!("Node::change{}: {missing}", title(word)),
        Ok(()) => why,
    }
}

/// Of a value that a repeat doesn't have; none of repeats that 5.9.2 doesn't know.
pub(super) fn no_value(tree: &Snapshot, repeat: &Repeat, value: &str) -> Option<String> {
    let line = print_attribute(tree, &Attribute::Repeat(Box::new(repeat.clone())));
    let line = line.trim();
    let number = value.parse::<i64>().ok();
    let range = |count: usize| format!("range[0-{}]", count.saturating_sub(1));
    Some(match (&repeat.over, number) {
        (Over::Integer(over), Some(_)) => format!(
            "RepeatInteger::changeValue:{line}. The new value should be in the range[{}-{}] but \
             found {value}",
            over.start, over.end
        ),
        (Over::Integer(_), None) => format!(
            "RepeatInteger::change:{line} The new value({value}) is not convertible to an long"
        ),
        (Over::Date(_), Some(date)) if value.len() == 8 && Date::of_number(date).is_none() => {
            format!("RepeatDate::change: {line} The new date({value}) is not valid")
        }
        (Over::Date(over), Some(date)) if value.len() == 8 => {
            let (least, most) = (over.start.min(over.end), over.start.max(over.end));
            let what = match (least..=most).contains(&date) {
                true => format!("{value} is not in line with the delta/step"),
                false => format!(
                    "should be in the range[{} : {}] but found {value}",
                    over.start, over.end
                ),
            };
            format!("RepeatDate::changeValue: {line}\nThe new date {what}")
        }
        (Over::Date(_), _) => format!(
            "RepeatDate::change: {line} The new date is not valid, expected 8 characters in \
             yyyymmdd format but found {value}"
        ),
        (Over::DateList(_), number) => {
            let what = match number {
                Some(_) => "not a valid member of the date list",
                None => "must be convertible to integer, and correspond to an existing value",
            };
            format!("RepeatDateList::change: {line}\nThe new value {value} is {what}\n")
        }
        (Over::Enumerated(over), Some(_)) => format!(
            "RepeatEnumerated::changeValue:{line}\nThe new value '{value}' is not a valid index \
             expected {} but found '{value}'",
            range(over.items.len())
        ),
        (Over::Enumerated(_), None) => format!(
            "RepeatEnumerated::change:{line}\nThe new value {value} is not a valid index or a \
             member of the enumerated list\n"
        ),
        (Over::Text(over), Some(_)) => format!(
            "RepeatString::change: {line} The new the integer {value} is not a valid index \
             expected {}'",
            range(over.items.len())
        ),
        (Over::Text(_), None) => format!(
            "RepeatString::change: {line}\nThe new value {value} is not a valid index or member \
             of the string list"
        ),
        (Over::Day { .. } | Over::DateTime(_) | Over::DateTimeList(_), _) => return None,
    })
}
