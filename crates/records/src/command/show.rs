//! Values and types, for people and for programs.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::protocol::{Array, Chosen, Field, Item, Length, Number, Request, Type, Value};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

/// The fields of an item that were asked for.
pub(crate) fn asked(request: &Request, item: &Item) -> Item {
    request.field.as_ref().map_or_else(|| item.clone(), |selection| selection.part(item))
}

/// A value as JSON: structures are objects whose fields stand in the order of their type, arrays
/// lists; numbers without a JSON form are null.
pub(crate) fn item_json(item: &Item) -> NodesJson<'_> {
    NodesJson(item.kind(), item.nodes())
}

/// A value as JSON: its type, and its node with those of its fields behind it.
pub(crate) struct NodesJson<'a>(&'a Type, &'a [Value]);

impl Serialize for NodesJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(kind, nodes) = *self;
        match (kind, &nodes[0]) {
            (Type::Structure(structure), _) => FieldsJson(structure.fields(), nodes).serialize(to),
            (Type::Structures(of), Value::Structures(all)) => {
                let fields = |nodes| FieldsJson(of.fields(), nodes);
                to.collect_seq(all.iter().map(|nodes| nodes.as_deref().map(fields)))
            }
            (Type::Union(of), Value::Union(chosen)) => {
                chosen.as_deref().and_then(|one| ChosenJson::of(of.members(), one)).serialize(to)
            }
            (Type::Unions(of), Value::Unions(all)) => {
                to.collect_seq(all.iter().map(|chosen| {
                    chosen.as_ref().and_then(|one| ChosenJson::of(of.members(), one))
                }))
            }
            (_, Value::Any(item)) => item.as_deref().map(item_json).serialize(to),
            (_, Value::Anys(all)) => {
                to.collect_seq(all.iter().map(|item| item.as_ref().map(item_json)))
            }
            (_, Value::Array(array)) => {
                to.collect_seq(array.iter().map(|value| scalar_json(&value)))
            }
            (_, Value::Strings(all)) => to.collect_seq(all.iter().map(|text| &**text)),
            (_, value) => scalar_json(value).serialize(to),
        }
    }
}

/// The fields of a structure, in their order.
struct FieldsJson<'a>(&'a [Field], &'a [Value]);

impl Serialize for FieldsJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(fields, nodes) = *self;
        let nodes_of = |field: &Field| &nodes[field.at()..];
        to.collect_map(fields.iter().map(|it| (&*it.name, NodesJson(&it.kind, nodes_of(it)))))
    }
}

/// The member of a union that was chosen, by its name.
struct ChosenJson<'a>(&'a Field, &'a Chosen);

impl<'a> ChosenJson<'a> {
    /// `None` where the type has no such member.
    fn of(members: &'a [Field], chosen: &'a Chosen) -> Option<Self> {
        members.get(chosen.member as usize).map(|member| Self(member, chosen))
    }
}

impl Serialize for ChosenJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(member, chosen) = *self;
        to.collect_map([(&*member.name, NodesJson(&member.kind, &chosen.nodes))])
    }
}

fn scalar_json(value: &Value) -> Json {
    match value {
        Value::Boolean(is) => json!(is),
        Value::String(text) => json!(&**text),
        value => match value.number() {
            Some(Number::Whole(whole)) => {
                i64::try_from(whole).map_or_else(|_| json!(u64::try_from(whole).ok()), Json::from)
            }
            Some(Number::Real(real)) => json!(real),
            None => Json::Null,
        },
    }
}

/// A type as JSON: names of types, objects with the fields of structures.
pub(crate) fn type_json(kind: &Type) -> Json {
    let parts = |word: &str, id: &str, fields: &[Field]| {
        let list: Vec<_> = fields
            .iter()
            .map(|field| json!({ "name": &*field.name, "type": type_json(&field.kind) }))
            .collect();
        json!({ word: id, "fields": list })
    };
    match kind {
        Type::Scalar(scalar) => json!(scalar.name()),
        Type::BoundedString(most) => json!(format!("string({most})")),
        Type::Array(scalar, Length::Any) => json!(format!("{}[]", scalar.name())),
        Type::Array(scalar, Length::AtMost(most)) => json!(format!("{}<{most}>", scalar.name())),
        Type::Array(scalar, Length::Exactly(n)) => json!(format!("{}[{n}]", scalar.name())),
        Type::Structure(all) => parts("structure", all.id(), all.fields()),
        Type::Structures(all) => parts("structure[]", all.id(), all.fields()),
        Type::Union(all) => parts("union", all.id(), all.members()),
        Type::Unions(all) => parts("union[]", all.id(), all.members()),
        Type::Any => json!("any"),
        Type::Anys => json!("any[]"),
    }
}

/// What a record holds in one line: its value, and what is out of the ordinary about it.
pub(crate) fn record_line(item: &Item) -> String {
    let mut line = match item.get("value") {
        Some(Value::Structure) => match (item.number("value.index"), item.get("value.choices")) {
            (Some(index), Some(Value::Strings(choices))) => {
                let at = index.whole().and_then(|index| usize::try_from(index).ok());
                let choice = at.and_then(|at| choices.get(at)).cloned();
                choice.unwrap_or_else(|| Arc::from(format!("choice {}", index.real()))).to_string()
            }
            _ => return item_text(item),
        },
        Some(value) => match item.kind().field("value") {
            Some((_, kind)) => value_text(kind, std::slice::from_ref(value)),
            None => value.to_string(),
        },
        None => return item_text(item),
    };
    if let Some(units) = item.text("display.units").filter(|units| !units.is_empty()) {
        let _ = write!(line, " {units}");
    }
    let severity = item.number("alarm.severity").and_then(Number::whole).unwrap_or_default();
    if severity != 0 {
        let name = match severity {
            1 => "MINOR",
            2 => "MAJOR",
            3 => "INVALID",
            _ => "UNDEFINED",
        };
        let _ = write!(line, "  {name} {}", item.text("alarm.message").unwrap_or_default());
    }
    line
}

/// The time stamp of a record's value, if it has one.
pub(crate) fn time(item: &Item) -> Option<String> {
    let seconds = item.number("timeStamp.secondsPastEpoch")?.whole()?;
    let nanoseconds = item.number("timeStamp.nanoseconds")?.whole()?;
    let nanoseconds = i32::try_from(nanoseconds).ok()?;
    let seconds = i64::try_from(seconds).ok()?;
    // All zeros is what a record has that was never given a time.
    if (seconds, nanoseconds) == (0, 0) {
        return None;
    }
    jiff::Timestamp::new(seconds, nanoseconds).ok().map(|time| format!("{time:.6}"))
}

/// How many elements of a list are shown.
const SHOWN: usize = 10;

/// A value in one line, with the names of its parts: `{a: 1, b: 2}` is a structure, `member: 1` a
/// union.
fn value_text(kind: &Type, nodes: &[Value]) -> String {
    let fields = |fields: &[Field], nodes: &[Value]| {
        let one = |field: &Field| {
            format!("{}: {}", field.name, value_text(&field.kind, &nodes[field.at()..]))
        };
        format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let chosen = |members: &[Field], chosen: Option<&Chosen>| {
        let member = chosen.and_then(|it| Some((members.get(it.member as usize)?, it)));
        member.map_or_else(
            || "(nothing)".to_owned(),
            |(member, it)| format!("{}: {}", member.name, value_text(&member.kind, &it.nodes)),
        )
    };
    let any = |item: Option<&Item>| {
        item.map_or("(nothing)".to_owned(), |item| value_text(item.kind(), item.nodes()))
    };
    match (kind, &nodes[0]) {
        (Type::Structure(of), _) => fields(of.fields(), nodes),
        (Type::Structures(of), Value::Structures(all)) => list(all, |nodes| match nodes {
            Some(nodes) => fields(of.fields(), nodes),
            None => "(nothing)".to_owned(),
        }),
        (Type::Union(of), Value::Union(it)) => chosen(of.members(), it.as_deref()),
        (Type::Unions(of), Value::Unions(all)) => {
            list(all, |it| format!("{{{}}}", chosen(of.members(), it.as_ref())))
        }
        (_, Value::Any(item)) => any(item.as_deref()),
        (_, Value::Anys(all)) => list(all, |item| any(item.as_ref())),
        (_, value) => value.to_string(),
    }
}

fn list<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
    let shown: Vec<_> = all.iter().take(SHOWN).map(one).collect();
    let more = match all.len() > SHOWN {
        true => format!(", … {} in all", all.len()),
        false => String::new(),
    };
    format!("[{}{more}]", shown.join(", "))
}

/// A value with all its fields, a line each.
pub(crate) fn item_text(item: &Item) -> String {
    if item.kind().structure().is_none() {
        return value_text(item.kind(), item.nodes());
    }
    let mut text = String::new();
    for (bit, value) in item.nodes().iter().enumerate() {
        if let (Some((path, kind)), false) =
            (item.kind().path(bit), matches!(value, Value::Structure))
        {
            if !text.is_empty() {
                text.push('\n');
            }
            let value = value_text(kind, std::slice::from_ref(value));
            let _ = write!(text, "{path}  {value}");
        }
    }
    text
}

fn is_image(item: &Item) -> bool {
    item.kind().structure().is_some_and(|of| of.id().starts_with("epics:nt/NTNDArray:"))
}

/// The sizes of an array of several dimensions, the slowest first, as NumPy writes them; of one
/// that says none, or others than it has elements, how many elements it has.
pub(crate) fn shape(item: &Item, array: &Array) -> Vec<usize> {
    let size = |nodes: &Option<Box<[Value]>>| {
        let whole = nodes.as_ref()?.get(1)?.number()?.whole()?;
        usize::try_from(whole).ok()
    };
    let sizes: Option<Vec<usize>> = match item.get("dimension") {
        Some(Value::Structures(all)) if is_image(item) => all.iter().rev().map(size).collect(),
        _ => None,
    };
    let elements = |sizes: &Vec<usize>| {
        sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size)) == Some(array.len())
    };
    sizes.filter(|sizes| !sizes.is_empty() && elements(sizes)).unwrap_or(vec![array.len()])
}

/// The array that a record holds, wherever it holds it.
pub(crate) fn array(item: &Item) -> Option<&Array> {
    match item.get("value")? {
        Value::Array(array) => Some(array),
        Value::Union(Some(chosen)) => chosen.nodes.first()?.as_array(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Scalar, Structure};

    #[test]
    fn fields_stand_in_the_order_of_their_type() {
        let columns = ["z", "a", "m"].map(|name| Field::new(name, Scalar::Long));
        let table = Type::Structure(Structure::new("", columns));
        let item = Item::new(Type::Structure(Structure::new("", [Field::new("value", table)])));
        let text = serde_json::to_string(&item_json(&item)).unwrap();
        assert_eq!(text, r#"{"value":{"z":0,"a":0,"m":0}}"#);
    }
}
