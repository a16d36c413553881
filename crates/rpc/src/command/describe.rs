//! `loadline rpc list` and `describe`. Control plane.

use std::fmt::Write as _;
use std::process::ExitCode;

use prost_reflect::{
    Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ServiceDescriptor,
};
use serde_json::json;
use service::{Failure, Outcome, out};

use super::session::{Session, failure};
use crate::client::{Schema, SchemaError};

/// Where there is none to list.
const NO_SERVICES: &str = "there are no services";

async fn schema(session: &Session, symbols: &[&str]) -> Result<Schema, Failure> {
    if session.has_files() {
        return session.schema_of_files();
    }
    let client = session.connect().await?;
    session.schema(&client, symbols).await
}

/// Prints what was asked for; where there is `nothing`, for people, that.
fn finish(json: bool, value: &serde_json::Value, text: &str, nothing: &str) -> Outcome {
    match json {
        true => out::print(format!("{value}\n"))?,
        false if text.is_empty() => out::note(nothing),
        false => out::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the services, or the functions of one.
pub(super) async fn list(session: &Session, service: Option<&str>, json: bool) -> Outcome {
    let symbols: Vec<_> = service.into_iter().collect();
    let schema = schema(session, &symbols).await?;
    let Some(name) = service else {
        let text = schema.services.iter().map(|name| format!("{name}\n")).collect::<String>();
        let value = json!({ "schema": 1, "services": schema.services });
        return finish(json, &value, &text, NO_SERVICES);
    };
    let found = schema.service(name).ok_or_else(|| missing(name, &schema))?;
    let methods: Vec<_> = found.methods().map(|one| format!("{name}/{}", one.name())).collect();
    let text = methods.iter().map(|name| format!("{name}\n")).collect::<String>();
    let nothing = format!("{name} has no functions");
    finish(json, &json!({ "schema": 1, "methods": methods }), &text, &nothing)
}

fn missing(name: &str, schema: &Schema) -> Failure {
    failure(SchemaError::missing(name, &schema.services, Some(&schema.pool)))
}

/// Prints what a symbol is.
pub(super) async fn describe(session: &Session, symbol: Option<&str>, json: bool) -> Outcome {
    let symbol = symbol.map(|symbol| symbol.trim_start_matches(['/', '.']).replace('/', "."));
    let symbols: Vec<_> = symbol.as_deref().into_iter().collect();
    let schema = schema(session, &symbols).await?;
    let mut text = String::new();
    match symbol.as_deref() {
        None => {
            for service in schema.services.iter().filter_map(|name| schema.service(name)) {
                write_service(&mut text, &service);
            }
        }
        Some(name) => {
            write_symbol(&mut text, &schema, name).ok_or_else(|| missing(name, &schema))?
        }
    }
    let value = json!({ "schema": 1, "symbol": symbol, "proto": text });
    finish(json, &value, &text, NO_SERVICES)
}

fn write_symbol(text: &mut String, schema: &Schema, name: &str) -> Option<()> {
    if let Some(service) = schema.service(name) {
        write_service(text, &service);
    } else if let Some(message) = schema.pool.get_message_by_name(name) {
        write_message(text, &message, 0);
    } else if let Some(one) = schema.pool.get_enum_by_name(name) {
        write_enum(text, &one, 0);
    } else {
        let (service, method) = name.rsplit_once('.')?;
        let service = schema.service(service)?;
        let method = service.methods().find(|one| one.name() == method)?;
        let _ = writeln!(text, "{}", method_line(&method));
        write_message(text, &method.input(), 0);
        if method.output() != method.input() {
            write_message(text, &method.output(), 0);
        }
    }
    Some(())
}

// Writing to a string can't fail, here and below.

fn write_service(text: &mut String, service: &ServiceDescriptor) {
    let _ = writeln!(text, "service {} {{", service.full_name());
    for method in service.methods() {
        let _ = writeln!(text, "  {}", method_line(&method));
    }
    text.push_str("}\n");
}

fn method_line(method: &MethodDescriptor) -> String {
    let stream = |is: bool| if is { "stream " } else { "" };
    format!(
        "rpc {}({}{}) returns ({}{});",
        method.name(),
        stream(method.is_client_streaming()),
        method.input().full_name(),
        stream(method.is_server_streaming()),
        method.output().full_name(),
    )
}

fn write_message(text: &mut String, message: &MessageDescriptor, depth: usize) {
    let indent = "  ".repeat(depth);
    let name = if depth == 0 { message.full_name() } else { message.name() };
    let _ = writeln!(text, "{indent}message {name} {{");
    let is_real =
        |field: &FieldDescriptor| field.containing_oneof().is_none_or(|one| one.is_synthetic());
    for field in message.fields().filter(is_real) {
        let _ = writeln!(text, "{indent}  {}", field_line(&field));
    }
    for one in message.oneofs().filter(|one| !one.is_synthetic()) {
        let _ = writeln!(text, "{indent}  oneof {} {{", one.name());
        for field in one.fields() {
            let _ = writeln!(text, "{indent}    {}", field_line(&field));
        }
        let _ = writeln!(text, "{indent}  }}");
    }
    for nested in message.child_messages().filter(|nested| !nested.is_map_entry()) {
        write_message(text, &nested, depth + 1);
    }
    for nested in message.child_enums() {
        write_enum(text, &nested, depth + 1);
    }
    let _ = writeln!(text, "{indent}}}");
}

fn field_line(field: &FieldDescriptor) -> String {
    let label = match field.cardinality() {
        _ if field.is_map() => "",
        Cardinality::Repeated => "repeated ",
        Cardinality::Required => "required ",
        Cardinality::Optional if is_optional(field) => "optional ",
        Cardinality::Optional => "",
    };
    format!("{label}{} {} = {};", type_name(field), field.name(), field.number())
}

fn is_optional(field: &FieldDescriptor) -> bool {
    field.containing_oneof().is_some_and(|one| one.is_synthetic())
}

fn type_name(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let part = |field: FieldDescriptor| type_name(&field);
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            format!("map<{}, {}>", part(key), part(value))
        }
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(one) => one.full_name().to_owned(),
        kind => format!("{kind:?}").to_lowercase(),
    }
}

fn write_enum(text: &mut String, one: &EnumDescriptor, depth: usize) {
    let indent = "  ".repeat(depth);
    let name = if depth == 0 { one.full_name() } else { one.name() };
    let _ = writeln!(text, "{indent}enum {name} {{");
    for value in one.values() {
        let _ = writeln!(text, "{indent}  {} = {};", value.name(), value.number());
    }
    let _ = writeln!(text, "{indent}}}");
}
