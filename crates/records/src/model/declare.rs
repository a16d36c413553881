//! Records declared in a TOML file: a table `[[record]]` each, `[[group]]` for records that are
//! made of others, and who may use them: a table `[[access]]` for each rule.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::Value as Toml;

use super::access::{Access, Rule};
use super::normative::{self, Parts};
use super::rules::has_limits;
use crate::protocol::{Item, MAX_NAME_BYTES, Number, Scalar, Type, Value};

/// A record that is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// What it is called.
    pub name: String,
    /// What it holds at first.
    pub item: Item,
    /// Whether clients may change it.
    pub is_writable: bool,
}

/// A group of records that is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredGroup {
    /// What it is called.
    pub name: String,
    /// Its fields, in the order of their names, each with the name of a record.
    pub records: Vec<(String, String)>,
    /// Whether clients may change it.
    pub is_writable: bool,
}

/// All that a text declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// Records.
    pub records: Vec<Declared>,
    /// Groups of these records, and of others that may be there.
    pub groups: Vec<DeclaredGroup>,
    /// Who may use them.
    pub access: Access,
}

/// A file that declares no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DeclareError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    record: Vec<Spanned<Written>>,
    #[serde(default)]
    group: Vec<WrittenGroup>,
    #[serde(default)]
    access: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGroup {
    name: Spanned<String>,
    records: Spanned<BTreeMap<String, String>>,
    writable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Spanned<String>,
    #[serde(rename = "type")]
    kind: Spanned<String>,
    value: Option<Spanned<Toml>>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    units: String,
    #[serde(default)]
    format: String,
    display: Option<Spanned<Limits>>,
    control: Option<Spanned<Limits>>,
    alarm: Option<Spanned<Alarms>>,
    writable: Option<bool>,
    #[serde(default)]
    choices: Vec<String>,
    #[serde(default)]
    columns: BTreeMap<String, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    low: Toml,
    high: Toml,
    step: Option<Toml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alarms {
    low: Option<Toml>,
    low_warning: Option<Toml>,
    high_warning: Option<Toml>,
    high: Option<Toml>,
    #[serde(default)]
    hysteresis: f64,
}

/// What a name in `type` stands for.
enum Named {
    Scalar(Scalar),
    Array(Scalar),
    Enumeration,
    Table,
    NameValue,
    NdArray,
    Uri,
}

const TYPES: &str = "boolean, byte, short, int, long, ubyte, ushort, uint, ulong, float, double \
                     or string, one of these with [] after it, enum, table, name_value, ndarray \
                     or uri";

/// A mistake and where it is in the text.
type Mistake = (Range<usize>, String);

/// Reads declarations.
///
/// # Errors
/// When the text is no TOML, or a declaration is invalid: the error has the line and the reason.
pub fn declare(text: &str) -> Result<Declarations, DeclareError> {
    let line = |at: usize| text[..at.min(text.len())].bytes().filter(|b| *b == b'\n').count() + 1;
    let mistake = |(span, what): Mistake| DeclareError { line: line(span.start), what };
    let file: File = toml::from_str(text)
        .map_err(|error| mistake((error.span().unwrap_or(0..0), error.message().to_owned())))?;
    let mut all = Declarations { access: Access(file.access), ..Declarations::default() };
    let mut names: Vec<Spanned<String>> = Vec::new();
    for written in file.record {
        names.push(written.get_ref().name.clone());
        let name = names.last().map(Spanned::get_ref).cloned().unwrap_or_default();
        let of_record = |(span, what)| mistake((span, format!("record {name:?}: {what}")));
        all.records.push(one(written).map_err(of_record)?);
    }
    for written in file.group {
        names.push(written.name.clone());
        let name = written.name.get_ref().clone();
        let of_group = |(span, what)| mistake((span, format!("group {name:?}: {what}")));
        all.groups.push(group(written).map_err(of_group)?);
    }
    let mut had = HashSet::new();
    match names.iter().find(|name| !had.insert(name.get_ref())) {
        Some(name) => {
            let what = format!("record {:?} is declared twice", name.get_ref());
            Err(mistake((name.span(), what)))
        }
        None => Ok(all),
    }
}

fn group(written: WrittenGroup) -> Result<DeclaredGroup, Mistake> {
    check_name(&written.name)?;
    let span = written.records.span();
    let records: Vec<_> = written.records.into_inner().into_iter().collect();
    let is_name = |field: &str| !field.is_empty() && !field.contains('.');
    if let Some((field, _)) = records.iter().find(|(field, _)| !is_name(field)) {
        return Err((span, format!("{field:?} is no name of a field")));
    }
    if records.is_empty() {
        return Err((span, "write its records: { x = \"motor:x\", y = \"motor:y\" }".to_owned()));
    }
    let name = written.name.into_inner();
    Ok(DeclaredGroup { name, records, is_writable: written.writable.unwrap_or(true) })
}

fn check_name(name: &Spanned<String>) -> Result<(), Mistake> {
    if (1..=MAX_NAME_BYTES).contains(&name.get_ref().len()) {
        return Ok(());
    }
    Err((name.span(), format!("a name has 1 to {MAX_NAME_BYTES} bytes")))
}

fn one(written: Spanned<Written>) -> Result<Declared, Mistake> {
    let whole = written.span();
    let written = written.into_inner();
    check_name(&written.name)?;
    let name = written.name.get_ref();
    let kind = named(&written.kind)?;
    let scalar = match kind {
        Named::Scalar(of) | Named::Array(of) => Some(of),
        _ => None,
    };
    refuse_strangers(&written, &kind, scalar)?;
    let mut item = Item::new(typed(&written, &kind)?);
    for (path, text) in [
        ("display.description", &written.description),
        ("display.units", &written.units),
        ("display.format", &written.format),
    ] {
        item.set(path, text.as_str());
    }
    if let Some(of) = scalar {
        set_limits(&written, of, &mut item)?;
    }
    if !written.choices.is_empty() {
        item.set("value.choices", Value::texts(&written.choices));
    }
    if matches!(kind, Named::Table) {
        item.set("labels", Value::texts(columns(&written).map(|(name, _)| name)));
    }
    set_value(&written, &kind, whole, &mut item)?;
    let is_writable = written.writable.unwrap_or(true);
    Ok(Declared { name: name.clone(), item, is_writable })
}

fn named(written: &Spanned<String>) -> Result<Named, Mistake> {
    let text = written.get_ref().as_str();
    let array = text.strip_suffix("[]").and_then(Scalar::of_name);
    Ok(match (text, Scalar::of_name(text), array) {
        (_, Some(of), _) => Named::Scalar(of),
        (_, _, Some(of)) => Named::Array(of),
        ("enum", ..) => Named::Enumeration,
        ("table", ..) => Named::Table,
        ("name_value", ..) => Named::NameValue,
        ("ndarray", ..) => Named::NdArray,
        ("uri", ..) => Named::Uri,
        _ => return Err((written.span(), format!("{text:?} is no type; write {TYPES}"))),
    })
}

/// Returns a part of a declaration that its type has no field for.
fn refuse_strangers(
    written: &Written,
    kind: &Named,
    scalar: Option<Scalar>,
) -> Result<(), Mistake> {
    let has_numbers = scalar.is_some_and(has_limits);
    let limits = [&written.display, &written.control].into_iter().flatten().map(Spanned::span);
    let alarm = written.alarm.as_ref().map(Spanned::span);
    if let Some(span) = limits.chain(alarm).next().filter(|_| !has_numbers) {
        return Err((span, "only numbers have limits".to_owned()));
    }
    if let Some(alarm) = written.alarm.as_ref().filter(|_| matches!(kind, Named::Array(_))) {
        return Err((alarm.span(), "an array has no alarm limits".to_owned()));
    }
    if written.choices.is_empty() == matches!(kind, Named::Enumeration) {
        return Err((
            written.kind.span(),
            "`choices` belong to an enum, and only there".to_owned(),
        ));
    }
    if written.columns.is_empty() == matches!(kind, Named::Table) {
        let what = "`columns` belong to a table, and only there: { name = \"double\" }";
        return Err((written.kind.span(), what.to_owned()));
    }
    Ok(())
}

/// The columns of a table with their types, in the order of the file.
fn columns(written: &Written) -> impl Iterator<Item = (&str, &Spanned<String>)> {
    let columns = written.columns.iter().map(|(name, of)| (name.as_str(), of));
    let mut columns: Vec<_> = columns.collect();
    columns.sort_by_key(|(_, of)| of.span().start);
    columns.into_iter()
}

fn typed(written: &Written, kind: &Named) -> Result<Type, Mistake> {
    let Written { description, units, format, display, control, alarm, .. } = written;
    let texts = [description, units, format];
    let parts = Parts {
        display: display.is_some() || texts.iter().any(|text| !text.is_empty()),
        control: control.is_some(),
        value_alarm: alarm.is_some(),
    };
    let mut typed = Vec::new();
    for (name, of) in columns(written) {
        let Some(scalar) = Scalar::of_name(of.get_ref()) else {
            return Err((of.span(), format!("{:?} is no type of a column", of.get_ref())));
        };
        typed.push((name, scalar));
    }
    Ok(match kind {
        Named::Scalar(of) => normative::scalar(*of, parts),
        Named::Array(of) => normative::scalar_array(*of, parts),
        Named::Enumeration => normative::enumeration(parts),
        Named::Table => normative::table(typed),
        Named::NameValue => normative::name_value(Scalar::String),
        Named::NdArray => normative::nd_array(),
        Named::Uri => normative::uri([]),
    })
}

fn set_limits(written: &Written, of: Scalar, item: &mut Item) -> Result<(), Mistake> {
    let mut set = |path: &str, value: &Toml, span: Range<usize>| {
        let number = scalar_value(of, value).ok_or((span, wrong(value, of.name())))?;
        item.set(path, number);
        Ok::<_, Mistake>(())
    };
    for (path, limits) in [("display", &written.display), ("control", &written.control)] {
        let Some(limits) = limits else { continue };
        let (span, limits) = (limits.span(), limits.get_ref());
        set(&format!("{path}.limitLow"), &limits.low, span.clone())?;
        set(&format!("{path}.limitHigh"), &limits.high, span.clone())?;
        if real(&limits.low) > real(&limits.high) {
            return Err((span, "`low` lies above `high`".to_owned()));
        }
        if let Some(step) = &limits.step {
            set(&format!("{path}.minStep"), step, span)?;
        }
    }
    let Some(alarm) = &written.alarm else { return Ok(()) };
    let (span, alarm) = (alarm.span(), alarm.get_ref());
    // The severities are those of `alarm_t`: 1 is minor, 2 is major.
    let limits = [
        ("lowAlarm", &alarm.low, 2),
        ("lowWarning", &alarm.low_warning, 1),
        ("highWarning", &alarm.high_warning, 1),
        ("highAlarm", &alarm.high, 2),
    ];
    for (name, limit, severity) in limits {
        let Some(limit) = limit else { continue };
        let number = scalar_value(of, limit).ok_or((span.clone(), wrong(limit, of.name())))?;
        item.set(&format!("valueAlarm.{name}Limit"), number);
        item.set(&format!("valueAlarm.{name}Severity"), severity);
    }
    item.set("valueAlarm.active", true);
    item.set("valueAlarm.hysteresis", alarm.hysteresis);
    Ok(())
}

fn set_value(
    written: &Written,
    kind: &Named,
    whole: Range<usize>,
    item: &mut Item,
) -> Result<(), Mistake> {
    if matches!(kind, Named::NdArray) {
        item.set("value", normative::no_pixels());
    }
    let Some(value) = &written.value else { return Ok(()) };
    let (span, value) = (value.span(), value.get_ref());
    let refused = |what: &str| (span.clone(), wrong(value, what));
    match kind {
        Named::Scalar(of) => {
            let value = scalar_value(*of, value).ok_or_else(|| refused(of.name()))?;
            item.set("value", value);
        }
        Named::Array(of) => {
            let value = array_value(*of, value).ok_or_else(|| refused("list of that type"))?;
            item.set("value", value);
        }
        Named::Enumeration => {
            let index = match value {
                Toml::Integer(index) => usize::try_from(*index).ok(),
                Toml::String(text) => written.choices.iter().position(|choice| choice == text),
                _ => None,
            };
            let index = index.filter(|index| *index < written.choices.len());
            let index = index.ok_or_else(|| refused("choice or index of one"))?;
            item.set("value.index", i32::try_from(index).unwrap_or(i32::MAX));
        }
        Named::Table => {
            let Toml::Table(columns) = value else {
                return Err(refused("table of lists"));
            };
            for (name, list) in columns {
                let path = format!("value.{name}");
                let column = item.kind().field(&path).and_then(|(_, kind)| match kind {
                    Type::Array(of, _) => array_value(*of, list),
                    _ => None,
                });
                let column = column.ok_or_else(|| refused("list for each column"))?;
                item.set(&path, column);
            }
        }
        Named::NameValue => {
            let Toml::Table(pairs) = value else { return Err(refused("table of names")) };
            item.set("name", Value::texts(pairs.keys()));
            let texts = pairs.values().map(|value| match value {
                Toml::String(text) => text.clone(),
                value => value.to_string(),
            });
            item.set("value", Value::texts(texts));
        }
        Named::NdArray | Named::Uri => {
            return Err((whole, "this type takes its value from a put, not from here".to_owned()));
        }
    }
    Ok(())
}

fn real(value: &Toml) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn scalar_value(of: Scalar, value: &Toml) -> Option<Value> {
    match (value, of) {
        (Toml::String(text), Scalar::String) => Some(Value::text(text)),
        (Toml::Boolean(is), Scalar::Boolean) => Some(Value::Boolean(*is)),
        (Toml::Integer(whole), of) if has_limits(of) => {
            Value::of_number(of, Number::Whole((*whole).into()))
        }
        (Toml::Float(real), of) if has_limits(of) => Value::of_number(of, Number::Real(*real)),
        _ => None,
    }
}

fn array_value(of: Scalar, value: &Toml) -> Option<Value> {
    let Toml::Array(list) = value else { return None };
    let values = list.iter().map(|value| scalar_value(of, value)).collect::<Option<Vec<_>>>()?;
    if of == Scalar::String {
        return Some(Value::texts(values.iter().filter_map(Value::as_text)));
    }
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.put_le(&mut bytes));
    Some(Value::array(of, bytes))
}

fn wrong(value: &Toml, wanted: &str) -> String {
    format!("{value} is no {wanted}")
}

#[cfg(test)]
mod tests {
    use super::declare;

    #[test]
    fn records_of_all_types_are_declared() {
        let text = r#"
            [[record]]
            name = "temperature"
            type = "double"
            value = 20.5
            units = "C"
            control = { low = 0, high = 80, step = 0.5 }
            alarm = { high_warning = 60, high = 75, hysteresis = 1.0 }

            [[record]]
            name = "wave"
            type = "short[]"
            value = [1, 2, -3]
            writable = false

            [[record]]
            name = "mode"
            type = "enum"
            choices = ["off", "on"]
            value = "on"

            [[record]]
            name = "table"
            type = "table"
            columns = { size = "int", name = "string" }
            value = { name = ["a", "b"], size = [1, 2] }

            [[record]]
            name = "facts"
            type = "name_value"
            value = { colour = "red", count = 3 }

            [[record]]
            name = "camera"
            type = "ndarray"
        "#;
        let all = declare(text).unwrap().records;
        let shown = |at: usize, path: &str| all[at].item.get(path).unwrap().to_string();
        assert_eq!(shown(0, "value"), "20.5");
        assert_eq!(shown(0, "control.minStep"), "0.5");
        assert_eq!(shown(0, "valueAlarm.highAlarmSeverity"), "2");
        assert_eq!((shown(1, "value"), all[1].is_writable), ("[1, 2, -3]".to_owned(), false));
        assert_eq!(shown(2, "value.index"), "1");
        assert_eq!(shown(3, "value.name"), r#"["a", "b"]"#);
        assert_eq!(shown(3, "labels"), r#"["size", "name"]"#, "in the order of the file");
        assert_eq!(shown(4, "value"), r#"["red", "3"]"#);
        assert_eq!(all[5].item.kind().structure().unwrap().id(), "epics:nt/NTNDArray:1.0");
        assert_eq!(shown(5, "value"), "[]");
    }

    #[test]
    fn mistakes_say_their_line_and_what_would_be_right() {
        let error = |text: &str| declare(text).unwrap_err().to_string();
        let text = "[[record]]\nname = \"a\"\ntype = \"real\"";
        assert!(
            error(text).starts_with("line 3: record \"a\": \"real\" is no type; write boolean")
        );
        let text = "[[record]]\nname = \"a\"\ntype = \"byte\"\nvalue = 300";
        assert_eq!(error(text), "line 4: record \"a\": 300 is no byte");
        let text = "[[record]]\nname = \"a\"\ntype = \"enum\"";
        assert!(error(text).contains("`choices` belong to an enum"));
        let text = "[[record]]\nname = \"a\"\ntype = \"string\"\nalarm = { high = 1 }";
        assert!(error(text).starts_with("line 4: record \"a\": only numbers have limits"));
        let text = "[[record]]\nname = \"a\"\ntype = \"int\"\ncontrol = { low = 5, high = 1 }";
        assert_eq!(error(text), "line 4: record \"a\": `low` lies above `high`");
        let twice = "[[record]]\nname = \"a\"\ntype = \"int\"\n".repeat(2);
        assert!(error(&twice).starts_with("line 5: record \"a\" is declared twice"));
        let text = "[[record]]\nname = \"a\"\ntype = \"int\"\n[[group]]\nname = \"a\"\n";
        let error_of = |records: &str| error(&format!("{text}records = {records}"));
        assert!(error_of("{ x = \"b\" }").starts_with("line 5: record \"a\" is declared twice"));
        assert!(error_of("{}").starts_with("line 6: group \"a\": write its records"));
        assert!(error_of("{ \"x.y\" = \"b\" }").contains("\"x.y\" is no name of a field"));
        assert!(error("[[record]]\nnames = 1").starts_with("line 2: unknown field `names`"));
    }
}
