//! `{workload.size}` in what a suite says of its targets: the point's own numbers and texts. So a
//! sweep that changes the workload changes its targets with it.

/// The value at a dotted key: of several tables the one of that `name`, else the first.
pub(super) fn value_at<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let mut value = None;
    let mut table = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        value = table.get(part);
        match value? {
            toml::Value::Table(inner) => table = inner,
            toml::Value::Array(items) => {
                let wanted = parts.peek().copied();
                let named =
                    |item: &&toml::Value| item.get("name").and_then(toml::Value::as_str) == wanted;
                let found = items.iter().find(named);
                if found.is_some() {
                    parts.next();
                }
                table = found.or(items.first())?.as_table()?;
            }
            _ if parts.peek().is_some() => return None,
            _ => {}
        }
    }
    value
}

/// Fills in every `{KEY}` with a dot in it, in all texts of `[[target]]`.
///
/// # Errors
/// Which one names nothing plain in the suite.
pub(super) fn fill_targets(table: &mut toml::Table) -> Result<(), String> {
    let Some(mut targets) = table.remove("target") else { return Ok(()) };
    let outcome = fill(&mut targets, table);
    table.insert("target".to_owned(), targets);
    outcome
}

fn fill(value: &mut toml::Value, table: &toml::Table) -> Result<(), String> {
    match value {
        toml::Value::String(text) => *text = filled(text, table)?,
        toml::Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, table))?,
        toml::Value::Table(inner) => {
            inner.iter_mut().try_for_each(|(_, value)| fill(value, table))?;
        }
        _ => {}
    }
    Ok(())
}

fn filled(text: &str, table: &toml::Table) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let is_key = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let end = from[1..].find(|c| !is_key(c)).map_or(from.len(), |end| end + 1);
        let key = &from[1..end];
        if !key.contains('.') || !from[end..].starts_with('}') {
            out.push('{');
            rest = &from[1..];
            continue;
        }
        match value_at(table, key) {
            Some(toml::Value::String(text)) => out.push_str(text),
            Some(value) if !value.is_table() && !value.is_array() => {
                out.push_str(&value.to_string());
            }
            _ => return Err(format!("{{{key}}} in a target names no number or text of the suite")),
        }
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_take_the_points_values_and_keep_what_is_none() {
        let mut table: toml::Table = r#"
            [workload]
            size = 10_000_000
            keys = { count = 7 }
            [[clients]]
            name = "slow"
            arrivals = { pause = "200ms" }
            [[target]]
            name = "a"
            options = { size = "{workload.size}" }
            command = [
                "{dir}/x", "{workload.keys.count}", "{clients.slow.arrivals.pause}",
                "awk { print $1.5 }",
            ]
        "#
        .parse()
        .unwrap();
        fill_targets(&mut table).unwrap();
        let target = &table["target"][0];
        assert_eq!(target["options"]["size"].as_str(), Some("10000000"));
        let command: Vec<_> =
            target["command"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(command, ["{dir}/x", "7", "200ms", "awk { print $1.5 }"]);
        table["target"][0]["name"] = "{workload.sise}".into();
        let error = fill_targets(&mut table).unwrap_err();
        assert!(error.starts_with("{workload.sise} in a target"), "{error}");
        assert!(table.contains_key("target"));
    }
}
