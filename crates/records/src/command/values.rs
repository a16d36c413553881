//! Values as they are typed.

use std::sync::Arc;

use crate::protocol::{Bits, Chosen, Item, Number, Scalar, Type, Value};
use anyhow::{Context as _, anyhow, bail};

/// Puts what was typed into `item`, and says which fields that are: `21.5`, `1 2 3`, `[1,2,3]`,
/// `on`, or `value=21.5 alarm.severity=1`.
pub(crate) fn fill(item: &mut Item, words: &[String]) -> anyhow::Result<Bits> {
    let is_named = |word: &String| {
        word.split_once('=').is_some_and(|(path, _)| {
            item.kind().field(path).is_some() || member(item.kind(), path).is_some()
        })
    };
    let named: Vec<_> = words.iter().filter(|word| is_named(word)).collect();
    if named.is_empty() {
        let bit = set(item, "value", words).map_err(|error| {
            match words.iter().find_map(|word| field_of(word)) {
                Some(path) => no_field(path),
                None => error,
            }
        })?;
        return Ok([bit].into_iter().collect());
    }
    if named.len() < words.len() {
        bail!("write either values, or FIELD=VALUE for each field");
    }
    let mut bits = Bits::new();
    for (path, text) in words.iter().filter_map(|word| word.split_once('=')) {
        bits.insert(set(item, path, &[text.to_owned()])?);
    }
    Ok(bits)
}

/// The field that a word names, where it looks as if it did.
fn field_of(word: &str) -> Option<&str> {
    let (path, _) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    (path.starts_with(|c: char| c.is_ascii_alphabetic()) && path.chars().all(is_name))
        .then_some(path)
}

fn no_field(path: &str) -> anyhow::Error {
    anyhow!("there is no field {path:?}: write FIELD=VALUE for one that `info` lists")
}

/// The union that `path` leads into, by its bit, and which of its members that is.
fn member<'a>(kind: &'a Type, path: &str) -> Option<(usize, u32, &'a Type)> {
    let (path, name) = path.rsplit_once('.')?;
    let (bit, Type::Union(of)) = kind.field(path)? else { return None };
    let at = of.members().iter().position(|member| *member.name == *name)?;
    Some((bit, u32::try_from(at).ok()?, &of.members()[at].kind))
}

/// Sets one field, and says its bit.
fn set(item: &mut Item, path: &str, words: &[String]) -> anyhow::Result<usize> {
    if let Some((bit, member, kind)) = member(item.kind(), path) {
        let nodes = [plain(kind, path, words)?].into();
        item.put(bit, Value::Union(Some(Arc::new(Chosen { member, nodes }))));
        return Ok(bit);
    }
    let (bit, kind) = item.kind().field(path).ok_or_else(|| no_field(path))?;
    let (bit, value) = match kind {
        Type::Structure(of) if of.id() == "enum_t" => choice(item, bit, path, one(path, words)?)?,
        kind => (bit, plain(kind, path, words)?),
    };
    if !value.fits(item.kind().path(bit).context("a field")?.1) {
        bail!("{path} has no room for that");
    }
    item.put(bit, value);
    Ok(bit)
}

/// A scalar, or an array: its elements, or all of them between brackets.
fn plain(kind: &Type, path: &str, words: &[String]) -> anyhow::Result<Value> {
    Ok(match kind {
        Type::Scalar(scalar) => scalar_value(*scalar, one(path, words)?)?,
        Type::BoundedString(_) => Value::text(one(path, words)?),
        Type::Array(Scalar::String, _) => Value::texts(elements(words)),
        Type::Array(scalar, _) => {
            let mut bytes = Vec::new();
            for word in elements(words) {
                scalar_value(*scalar, &word)?.put_le(&mut bytes);
            }
            Value::array(*scalar, bytes)
        }
        Type::Union(of) => {
            let first = of.members().first().map_or("member", |member| &*member.name);
            bail!("{path} is a union: name what it shall hold, such as {path}.{first}=[1,0]")
        }
        _ => bail!("{path} is a {}: name its fields, FIELD=VALUE", kind_name(kind)),
    })
}

fn one<'a>(path: &str, words: &'a [String]) -> anyhow::Result<&'a str> {
    match words {
        [word] => Ok(word),
        _ => bail!("{path} takes one value, not {}", words.len()),
    }
}

/// The elements of an array: each a word, or all in one word as a JSON list, which may also leave
/// out quotation marks and have `nan` and `inf`.
fn elements(words: &[String]) -> Vec<String> {
    let [word] = words else { return words.to_vec() };
    if let Ok(all) = serde_json::from_str::<Vec<serde_json::Value>>(word) {
        let text = |element| match element {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        return all.into_iter().map(text).collect();
    }
    match word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.split(',').map(|element| element.trim().to_owned()).collect(),
        None => vec![word.clone()],
    }
}

/// An enum takes one of its choices or the index of one.
fn choice(item: &Item, bit: usize, path: &str, word: &str) -> anyhow::Result<(usize, Value)> {
    let choices = match item.get(&format!("{path}.choices")) {
        Some(Value::Strings(choices)) => choices.clone(),
        _ => bail!("{path} has no choices"),
    };
    let named = choices.iter().position(|choice| **choice == *word);
    let index = named.or_else(|| word.parse().ok());
    let index = index.and_then(|index| i32::try_from(index).ok());
    let index = index.with_context(|| format!("{word:?} is none of {choices:?}"))?;
    // The index is the first field of the structure.
    Ok((bit + 1, Value::Int(index)))
}

fn scalar_value(scalar: Scalar, word: &str) -> anyhow::Result<Value> {
    let wrong = || format!("{word:?} is no {}", scalar.name());
    let value = match (scalar, word.parse::<i128>(), word.parse::<f64>()) {
        (Scalar::String, ..) => Some(Value::text(word)),
        (Scalar::Boolean, ..) => match word {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        (_, Ok(whole), _) => Value::of_number(scalar, Number::Whole(whole)),
        (_, _, Ok(real)) => Value::of_number(scalar, Number::Real(real)),
        _ => None,
    };
    // What is too large for the type is no infinity, unless it was written so.
    let is_infinite =
        value.as_ref().and_then(Value::number).is_some_and(|it| it.real().is_infinite());
    let is_said = word.to_ascii_lowercase().contains("inf");
    value.filter(|_| is_said || !is_infinite).with_context(wrong)
}

fn kind_name(kind: &Type) -> String {
    kind.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::fill;
    use crate::model::normative::{Parts, enumeration, nd_array, scalar, scalar_array, uri};
    use crate::protocol::{Item, Scalar, Value};

    fn filled(mut item: Item, words: &str) -> Result<(Item, Vec<usize>), String> {
        let words: Vec<_> = words.split_ascii_whitespace().map(str::to_owned).collect();
        let bits = fill(&mut item, &words).map_err(|error| error.to_string())?;
        Ok((item, bits.iter().collect()))
    }

    #[test]
    fn words_become_values_of_the_channels_type() {
        let double = || Item::new(scalar(Scalar::Double, Parts::default()));
        let (item, bits) = filled(double(), "21.5").unwrap();
        assert_eq!((item.get("value"), bits), (Some(&Value::Double(21.5)), vec![1]));
        let (item, bits) = filled(double(), "value=2 alarm.severity=1").unwrap();
        assert_eq!((item.get("alarm.severity"), bits), (Some(&Value::Int(1)), vec![1, 3]));
        let array = || Item::new(scalar_array(Scalar::UByte, Parts::default()));
        assert_eq!(
            filled(array(), "1 2 255").unwrap().0.get("value").unwrap().to_string(),
            "[1, 2, 255]"
        );
        assert_eq!(
            filled(array(), "value=[3,4]").unwrap().0.get("value").unwrap().to_string(),
            "[3, 4]"
        );
        assert_eq!(filled(array(), "1 256").unwrap_err(), "\"256\" is no ubyte");
        assert_eq!(filled(double(), "1 2").unwrap_err(), "value takes one value, not 2");
        let why = filled(double(), "nosuch=1").unwrap_err();
        assert!(why.starts_with("there is no field \"nosuch\""), "{why}");
        assert_eq!(filled(double(), "1e400").unwrap_err(), "\"1e400\" is no double");
        let infinite = filled(double(), "inf").unwrap().0;
        assert_eq!(infinite.get("value"), Some(&Value::Double(f64::INFINITY)));
        let modes = Item::new(enumeration(Parts::default()));
        let modes = modes.with("value.choices", Value::texts(["off", "on"]));
        assert_eq!(filled(modes.clone(), "on").unwrap().1, [2]);
        assert!(filled(modes, "up").unwrap_err().starts_with("\"up\" is none of"));
    }

    #[test]
    fn lists_are_arrays_and_only_arrays() {
        let shown = |item: Item, words: &str| {
            filled(item, words).unwrap().0.get("value").unwrap().to_string()
        };
        let doubles = || Item::new(scalar_array(Scalar::Double, Parts::default()));
        for (words, array) in
            [("[]", "[]"), ("value=[]", "[]"), ("[1,2.5]", "[1, 2.5]"), ("[1,nan]", "[1, NaN]")]
        {
            assert_eq!(shown(doubles(), words), array, "{words}");
        }
        let texts = || Item::new(scalar_array(Scalar::String, Parts::default()));
        for (words, array) in [
            (r#"value=["a","b,c"]"#, r#"["a", "b,c"]"#),
            ("[a,b]", r#"["a", "b"]"#),
            ("a", r#"["a"]"#),
            ("[]", "[]"),
        ] {
            assert_eq!(shown(texts(), words), array, "{words}");
        }
        let text = || Item::new(scalar(Scalar::String, Parts::default()));
        assert_eq!(shown(text(), "value=[a,b]"), "[a,b]");
        assert_eq!(shown(text(), "[]"), "[]");
    }

    #[test]
    fn the_member_of_a_union_is_named() {
        let image = || Item::new(nd_array());
        let (item, bits) = filled(image(), "value.ushortValue=[1,2] uniqueId=7").unwrap();
        let array = super::super::show::array(&item).unwrap();
        assert_eq!((array.scalar(), array.len()), (Scalar::UShort, 2));
        assert_eq!(bits, [1, image().kind().field("uniqueId").unwrap().0]);
        let why = filled(image(), "1 2").unwrap_err();
        assert!(why.contains("value.booleanValue="), "{why}");
        let why = filled(Item::new(uri([])), "query.a=1").unwrap_err();
        assert!(why.contains("FIELD=VALUE"), "{why}");
    }
}
