//! Values as they are typed.

use std::sync::Arc;

use crate::protocol::{Bits, Chosen, Item, Scalar, Type, Value};
use anyhow::{Context as _, bail};
use serde_json::Value as Json;

use super::from_json;
use super::scalars::scalar_value;

/// Puts what was typed into `item`, and returns the fields set: `21.5`, `1 2 3`, `[1,2,3]`,
/// `on`, or `value=21.5 alarm.severity=1`.
pub(crate) fn fill(item: &mut Item, words: &[String]) -> anyhow::Result<Bits> {
    let is_named = |word: &String| {
        word.split_once('=').is_some_and(|(path, _)| {
            item.kind().field(path).is_some() || member(item.kind(), path).is_some()
        })
    };
    let named: Vec<_> = words.iter().filter(|word| is_named(word)).collect();
    if named.is_empty() {
        if let Some((path, _)) = words.iter().find_map(|word| named_nothing(item.kind(), word)) {
            bail!("there is no field {path:?}: {}", fields(item.kind()));
        }
        let bit = set(item, "value", words)?;
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

/// A word that names a field which isn't there, where no value has such a form.
fn named_nothing<'a>(kind: &Type, word: &'a str) -> Option<(&'a str, &'a str)> {
    let is_text = |kind: &Type| {
        matches!(kind, Type::Scalar(Scalar::String) | Type::BoundedString(_))
            || matches!(kind, Type::Array(Scalar::String, _))
    };
    let is_name = |path: &str| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
        !path.is_empty() && path.chars().all(is_part)
    };
    let may_be_text = kind.field("value").is_some_and(|(_, kind)| is_text(kind));
    word.split_once('=').filter(|(path, _)| is_name(path) && !may_be_text)
}

/// The fields that there are, as advice.
fn fields(kind: &Type) -> String {
    let Some(of) = kind.structure() else { return "the channel has no fields".to_owned() };
    format!("write FIELD=VALUE with one of {}", from_json::names(of.fields()))
}

/// The union that `path` leads into, by its bit, and which of its members that is.
fn member<'a>(kind: &'a Type, path: &str) -> Option<(usize, u32, &'a Type)> {
    let (path, name) = path.rsplit_once('.')?;
    let (bit, Type::Union(of)) = kind.field(path)? else { return None };
    let at = of.members().iter().position(|member| *member.name == *name)?;
    Some((bit, u32::try_from(at).ok()?, &of.members()[at].kind))
}

/// Sets one field, and returns its bit.
fn set(item: &mut Item, path: &str, words: &[String]) -> anyhow::Result<usize> {
    if let Some((bit, member, kind)) = member(item.kind(), path) {
        let nodes = [plain(kind, path, words)?].into();
        item.put(bit, Value::Union(Some(Arc::new(Chosen { member, nodes }))));
        return Ok(bit);
    }
    let (bit, kind) = item
        .kind()
        .field(path)
        .with_context(|| format!("there is no field {path:?}: {}", fields(item.kind())))?;
    let (bit, value) = match kind {
        Type::Structure(of) if of.id() == "enum_t" => choice(item, bit, path, one(path, words)?)?,
        Type::Any => (bit, any(item.nodes().get(bit), path, words)?),
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
        Type::Structures(_) | Type::Unions(_) | Type::Anys => {
            from_json::value(kind, path, &json(path, words)?)?
        }
        Type::Any => any(None, path, words)?,
        Type::Union(_) if words.iter().any(|word| word.starts_with('{') || *word == "null") => {
            from_json::value(kind, path, &json(path, words)?)?
        }
        Type::Union(of) => {
            let first = of.members().first().map_or("member", |member| &*member.name);
            bail!("{path} is a union: name what it shall hold, such as {path}.{first}=[1,0]")
        }
        _ => bail!("{path} is a {}: name its fields, FIELD=VALUE", kind_name(kind)),
    })
}

/// A value of any type: of the type that is there, where it fits, or of one that fits what was
/// typed.
fn any(held: Option<&Value>, path: &str, words: &[String]) -> anyhow::Result<Value> {
    if let Some(Value::Any(Some(held))) = held
        && let Ok(value) = plain(held.kind(), path, words)
        && let Some(item) = Item::of(held.kind().clone(), vec![value])
    {
        return Ok(Value::Any(Some(Arc::new(item))));
    }
    let json = match words {
        [word] => serde_json::from_str(word).unwrap_or_else(|_| Json::String(word.clone())),
        words => {
            let parsed = |word: &String| {
                serde_json::from_str(word).unwrap_or_else(|_| Json::String(word.clone()))
            };
            words.iter().map(parsed).collect()
        }
    };
    Ok(Value::Any(from_json::inferred(path, &json)?.map(Arc::new)))
}

fn json(path: &str, words: &[String]) -> anyhow::Result<Json> {
    let word = one(path, words)?;
    serde_json::from_str(word).with_context(|| format!("{path} takes JSON, and this is none"))
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

fn kind_name(kind: &Type) -> String {
    kind.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::fill;
    use crate::model::normative::{Parts, enumeration, nd_array, scalar, scalar_array, uri};
    use crate::protocol::{Field, Item, Scalar, Structure, Type, Union, Value};

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
    fn structures_unions_and_any_are_written_as_json() {
        let of =
            Structure::new("", [Field::new("a", Scalar::Int), Field::new("b", Scalar::String)]);
        let union = Union::new("", [Field::new("x", Scalar::Double)]);
        let fields = [
            Field::new("value", Type::Structures(of)),
            Field::new("any", Type::Any),
            Field::new("unions", Type::Unions(union)),
        ];
        let made = || Item::new(Type::Structure(Structure::new("", fields.clone())));
        let shown = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            let mut item = made();
            let bits = fill(&mut item, &words).map_err(|error| format!("{error:#}"))?;
            let path = item.kind().path(bits.next(0).unwrap()).unwrap().0;
            let json = serde_json::to_value(crate::command::show::item_json(&item)).unwrap();
            Ok::<_, String>(json[path].to_string())
        };
        for (word, json) in [
            (r#"value=[{"a": 1, "b": "x"}, null, {}]"#, r#"[{"a":1,"b":"x"},null,{"a":0,"b":""}]"#),
            ("any=2.5", "2.5"),
            ("any=some words", r#""some words""#),
            (r#"any={"a": [1, 2], "b": true}"#, r#"{"a":[1,2],"b":true}"#),
            ("any=null", "null"),
            (r#"unions=[{"x": 1}, null]"#, r#"[{"x":1.0},null]"#),
        ] {
            assert_eq!(shown(&[word]).as_deref(), Ok(json), "{word}");
        }
        for (word, why) in [
            (
                "nosuch=1",
                "there is no field \"nosuch\": write FIELD=VALUE with one of value, any, unions",
            ),
            (r#"value=[{"c": 1}]"#, "value has no field \"c\", but a, b"),
            (r#"unions=[{"y": 1}]"#, "unions has no member \"y\", but x"),
            ("value=[1]", "value takes structures"),
            ("any=[1, \"a\"]", "one type"),
        ] {
            let error = shown(&[word]).unwrap_err();
            assert!(error.contains(why), "{word}: {error}");
        }
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
