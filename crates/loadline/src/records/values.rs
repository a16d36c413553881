//! Values as they are typed.

use ::records::protocol::{Bits, Item, Number, Scalar, Type, Value};
use anyhow::{Context as _, bail};

/// Puts what was typed into `item`, and says which fields that are: `21.5`, `1 2 3`, `on`, or
/// `value=21.5 alarm.severity=1`.
pub(crate) fn fill(item: &mut Item, words: &[String]) -> anyhow::Result<Bits> {
    let is_named = |word: &String| {
        word.split_once('=').is_some_and(|(path, _)| item.kind().field(path).is_some())
    };
    let named: Vec<_> = words.iter().filter(|word| is_named(word)).collect();
    if named.is_empty() {
        let bit = set(item, "value", words)?;
        return Ok([bit].into_iter().collect());
    }
    if named.len() < words.len() {
        bail!("write either values, or FIELD=VALUE for each field");
    }
    let mut bits = Bits::new();
    for (path, text) in words.iter().filter_map(|word| word.split_once('=')) {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let list: Vec<String> = match inner {
            Some("") => Vec::new(),
            Some(inner) => inner.split(',').map(|word| word.trim().to_owned()).collect(),
            None => vec![text.to_owned()],
        };
        bits.insert(set(item, path, &list)?);
    }
    Ok(bits)
}

/// Sets one field, and says its bit.
fn set(item: &mut Item, path: &str, words: &[String]) -> anyhow::Result<usize> {
    let (bit, kind) = item.kind().field(path).with_context(|| format!("no field {path:?}"))?;
    let one = || match words {
        [word] => Ok(word.as_str()),
        _ => bail!("{path} takes one value, not {}", words.len()),
    };
    let (bit, value) = match kind {
        Type::Scalar(scalar) => (bit, scalar_value(*scalar, one()?)?),
        Type::BoundedString(_) => (bit, Value::text(one()?)),
        Type::Array(Scalar::String, _) => (bit, Value::texts(words)),
        Type::Array(scalar, _) => {
            let mut bytes = Vec::new();
            for word in words {
                scalar_value(*scalar, word)?.put_le(&mut bytes);
            }
            (bit, Value::array(*scalar, bytes))
        }
        Type::Structure(of) if of.id() == "enum_t" => choice(item, bit, path, one()?)?,
        _ => bail!("{path} is a {}: name its fields, FIELD=VALUE", kind_name(kind)),
    };
    if !value.fits(item.kind().path(bit).context("a field")?.1) {
        bail!("{path} has no room for that");
    }
    item.put(bit, value);
    Ok(bit)
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
    value.with_context(wrong)
}

fn kind_name(kind: &Type) -> String {
    kind.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::fill;
    use ::records::model::normative::{Parts, enumeration, scalar, scalar_array};
    use ::records::protocol::{Item, Scalar, Value};

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
        let modes = Item::new(enumeration(Parts::default()));
        let modes = modes.with("value.choices", Value::texts(["off", "on"]));
        assert_eq!(filled(modes.clone(), "on").unwrap().1, [2]);
        assert!(filled(modes, "up").unwrap_err().starts_with("\"up\" is none of"));
    }
}
