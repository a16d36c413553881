//! Values of any type as they are typed: JSON, of which each part becomes what its type asks for.

use std::sync::Arc;

use crate::protocol::{Chosen, Field, Item, Scalar, Structure, Type, Union, Value, zeros};
use anyhow::{Context as _, bail};
use serde_json::Value as Json;

use super::scalars::scalar_value;

/// The places of a value of type `kind`.
pub(super) fn nodes(kind: &Type, path: &str, json: &Json) -> anyhow::Result<Vec<Value>> {
    if let (Type::Structure(of), Json::Object(_)) = (kind, json) {
        return structure(of, path, json);
    }
    value(kind, path, json).map(|value| vec![value])
}

/// A value that takes one place.
pub(super) fn value(kind: &Type, path: &str, json: &Json) -> anyhow::Result<Value> {
    let list = || json.as_array().with_context(|| format!("{path} takes a list, such as [1, 2]"));
    Ok(match kind {
        Type::Scalar(scalar) => scalar_value(*scalar, &text(path, json)?)?,
        Type::BoundedString(_) => Value::text(text(path, json)?),
        Type::Array(Scalar::String, _) => {
            let all = list()?.iter().map(|element| text(path, element));
            Value::texts(all.collect::<anyhow::Result<Vec<_>>>()?)
        }
        Type::Array(scalar, _) => {
            let mut bytes = Vec::new();
            for element in list()? {
                scalar_value(*scalar, &text(path, element)?)?.put_le(&mut bytes);
            }
            Value::array(*scalar, bytes)
        }
        Type::Structures(of) => {
            let one = |element: &Json| {
                let nodes = || structure(of, path, element).map(Vec::into_boxed_slice);
                if element.is_null() { Ok(None) } else { nodes().map(Some) }
            };
            let all = list()?.iter().map(one).collect::<anyhow::Result<Vec<_>>>()?;
            Value::Structures(all.into())
        }
        Type::Union(of) => Value::Union(chosen(of, path, json)?.map(Arc::new)),
        Type::Unions(of) => {
            let all = list()?.iter().map(|element| chosen(of, path, element));
            Value::Unions(all.collect::<anyhow::Result<Vec<_>>>()?.into())
        }
        Type::Any => Value::Any(inferred(path, json)?.map(Arc::new)),
        Type::Anys => {
            let all = list()?.iter().map(|element| inferred(path, element));
            Value::Anys(all.collect::<anyhow::Result<Vec<_>>>()?.into())
        }
        Type::Structure(_) => bail!("{path} takes its fields, such as {{\"a\": 1}}"),
    })
}

/// A structure: fields that are left out are zeros.
fn structure(of: &Arc<Structure>, path: &str, json: &Json) -> anyhow::Result<Vec<Value>> {
    let takes = || format!("{path} takes structures, such as {{{:?}: 1}}", names(of.fields()));
    let object = json.as_object().with_context(takes)?;
    let mut all = zeros(&Type::Structure(Arc::clone(of)));
    for (name, json) in object {
        let field = of.fields().iter().find(|field| *field.name == **name);
        let field = field
            .with_context(|| format!("{path} has no field {name:?}, but {}", names(of.fields())))?;
        let nodes = nodes(&field.kind, &format!("{path}.{name}"), json)?;
        all[field.at()..field.at() + nodes.len()].clone_from_slice(&nodes);
    }
    Ok(all)
}

fn chosen(of: &Union, path: &str, json: &Json) -> anyhow::Result<Option<Chosen>> {
    if json.is_null() {
        return Ok(None);
    }
    let members = || names(of.members());
    let object = json.as_object().filter(|object| object.len() == 1);
    let (name, json) = object.and_then(|object| object.iter().next()).with_context(|| {
        format!("{path} is a union: write one member, {{\"NAME\": VALUE}}, of {}", members())
    })?;
    let at = of.members().iter().position(|member| *member.name == **name);
    let at = at.with_context(|| format!("{path} has no member {name:?}, but {}", members()))?;
    let nodes = nodes(&of.members()[at].kind, &format!("{path}.{name}"), json)?;
    Ok(Some(Chosen { member: u32::try_from(at)?, nodes: nodes.into() }))
}

/// A value of the type that fits what was typed: long, double, boolean, string, arrays of them, or
/// a structure; null is none.
pub(super) fn inferred(path: &str, json: &Json) -> anyhow::Result<Option<Item>> {
    if json.is_null() {
        return Ok(None);
    }
    let kind = inferred_type(path, json)?;
    let nodes = nodes(&kind, path, json)?;
    Item::of(kind, nodes).with_context(|| format!("{path} has no room for that")).map(Some)
}

fn inferred_type(path: &str, json: &Json) -> anyhow::Result<Type> {
    let scalar = |json: &Json| match json {
        Json::Bool(_) => Some(Scalar::Boolean),
        Json::Number(number) if number.is_i64() => Some(Scalar::Long),
        Json::Number(number) if number.is_u64() => Some(Scalar::ULong),
        Json::Number(_) => Some(Scalar::Double),
        Json::String(_) => Some(Scalar::String),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    };
    if let Some(scalar) = scalar(json) {
        return Ok(Type::Scalar(scalar));
    }
    match json {
        Json::Object(fields) => {
            let one = |(name, json): (&String, &Json)| {
                Ok(Field::new(name, inferred_type(&format!("{path}.{name}"), json)?))
            };
            let fields = fields.iter().map(one).collect::<anyhow::Result<Vec<_>>>()?;
            Ok(Type::Structure(Structure::new("", fields)))
        }
        Json::Array(all) => {
            let kinds: Option<Vec<_>> = all.iter().map(scalar).collect();
            let kinds = kinds.with_context(|| format!("{path} takes lists of scalars only"))?;
            let first = kinds.first().copied().unwrap_or(Scalar::Double);
            let is_number = |kind: &Scalar| !matches!(kind, Scalar::String | Scalar::Boolean);
            match kinds.iter().all(|kind| *kind == first) {
                true => Ok(Type::array(first)),
                false if kinds.iter().all(is_number) => Ok(Type::array(Scalar::Double)),
                false => bail!("{path} takes lists whose elements have one type"),
            }
        }
        _ => bail!("{path} has no type for null"),
    }
}

/// A scalar as it would be typed alone.
fn text(path: &str, json: &Json) -> anyhow::Result<String> {
    match json {
        Json::String(text) => Ok(text.clone()),
        Json::Number(_) | Json::Bool(_) => Ok(json.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            bail!("{path} takes a number or a text there, not {json}")
        }
    }
}

/// The names of fields, to be chosen from.
pub(super) fn names(fields: &[Field]) -> String {
    let all: Vec<_> = fields.iter().map(|field| &*field.name).collect();
    all.join(", ")
}
