//! Points: every combination of a sweep, and `--set` overrides, applied to the suite's table.

use std::collections::BTreeMap;

use super::error::{Source, SuiteError};

/// At most this many points in one suite: more is a mistake, not an experiment.
const MAX_POINTS: usize = 10_000;

/// A dotted key with the value that it takes in one point.
pub(crate) type Setting = (String, toml::Value);

/// Reads `KEY=VALUE`, where the value is TOML or, failing that, a bare string.
///
/// # Errors
/// When there is no `=`.
pub fn parse_setting(text: &str) -> Result<(String, toml::Value), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("\"{text}\" is not KEY=VALUE, e.g. clients.connections=64"))?;
    let document = format!("value = {value}");
    let parsed = document.parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    Ok((key.trim().to_owned(), value))
}

/// Applies `--set` overrides: a swept key that is set is no longer swept.
pub(crate) fn apply_settings(table: &mut toml::Table, settings: &[Setting]) -> Result<(), String> {
    for (key, value) in settings {
        let swept = table.get_mut("sweep").and_then(toml::Value::as_table_mut);
        let was_swept = swept.is_some_and(|sweep| sweep.remove(key).is_some());
        assign(table, key, value.clone()).map_err(|problem| format!("--set {key}: {problem}"))?;
        tracing::debug!(key, was_swept, "overridden");
    }
    Ok(())
}

/// Sets the value at a dotted key. `clients.X` means the only group, or the group of that name,
/// and likewise for `target.X`; an index counts from 0.
pub(crate) fn assign(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), String> {
    let Some((head, rest)) = key.split_once('.') else {
        // A mix and a single operation exclude each other: the newer one stands.
        match key {
            "operation" => table.remove("mix"),
            "mix" => table.remove("operation"),
            _ => None,
        };
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    let place = table.entry(head).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match place {
        // What is required has names with dots of their own, such as latency.p99.
        toml::Value::Table(named)
            if ["require", "carry", "expect", "abort_on", "derive"].contains(&head) =>
        {
            named.insert(rest.to_owned(), value);
            Ok(())
        }
        toml::Value::Table(inner) => assign(inner, rest, value),
        toml::Value::Array(items) => assign_in_array(items, head, rest, value),
        _ => Err(format!("`{head}` is a plain value and has no `{rest}`")),
    }
}

fn assign_in_array(
    items: &mut [toml::Value],
    head: &str,
    rest: &str,
    value: toml::Value,
) -> Result<(), String> {
    let (name, after) = rest.split_once('.').unwrap_or((rest, ""));
    let named =
        items.iter().position(|item| item.get("name").and_then(toml::Value::as_str) == Some(name));
    let (index, rest) = match named {
        Some(index) if !after.is_empty() => (index, after),
        _ if items.len() == 1 => (0, rest),
        _ => {
            return Err(format!(
                "there are {} of `{head}`: name one, `{head}.NAME.…`",
                items.len()
            ));
        }
    };
    match &mut items[index] {
        toml::Value::Table(inner) => assign(inner, rest, value),
        _ => Err(format!("`{head}` has no named entries")),
    }
}

/// Every combination of the values swept; keys in alphabetical order, the first varying slowest.
pub(crate) fn points(
    sweep: &toml::Table,
    source: &Source,
) -> Result<Vec<Vec<Setting>>, Box<SuiteError>> {
    let mut axes = BTreeMap::new();
    let mut together = true;
    let mut flat = Vec::new();
    flatten("", sweep, &mut flat);
    for (key, value) in flat {
        match (key.as_str(), value) {
            ("mode", toml::Value::String(mode)) if mode == "every-combination" => {}
            ("mode", toml::Value::String(mode)) if mode == "one-at-a-time" => together = false,
            ("mode", _) => {
                let help = "\"every-combination\" (the default) or \"one-at-a-time\"";
                return Err(source.error_at("sweep.mode", "unknown mode", Some(help.into())));
            }
            (_, toml::Value::Array(values)) if !values.is_empty() => {
                axes.insert(key, values);
            }
            _ => {
                let help = format!("\"{key}\" = [1, 2, 3]");
                let message = format!("`{key}` needs a list of values");
                return Err(source.error_at_swept(&key, message, Some(help)));
            }
        }
    }
    let lengths = axes.values().map(Vec::len);
    let count = match together {
        true => lengths.fold(1, usize::saturating_mul),
        false => 1 + lengths.map(|length| length - 1).sum::<usize>(),
    };
    if count > MAX_POINTS {
        let message = format!("{count} points; at most {MAX_POINTS}");
        return Err(source.error_at("sweep", message, None));
    }
    Ok(if together { product(&axes) } else { one_at_a_time(&axes) })
}

fn flatten(prefix: &str, table: &toml::Table, into: &mut Vec<Setting>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, into),
            value => into.push((key, value.clone())),
        }
    }
}

fn product(axes: &BTreeMap<String, Vec<toml::Value>>) -> Vec<Vec<Setting>> {
    axes.iter().fold(vec![Vec::new()], |points, (key, values)| {
        let combine = |point: &Vec<Setting>| {
            let with = |value: &toml::Value| {
                let mut point = point.clone();
                point.push((key.clone(), value.clone()));
                point
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        points.iter().flat_map(combine).collect()
    })
}

/// The first value of every key is its default; each further value is one more point.
fn one_at_a_time(axes: &BTreeMap<String, Vec<toml::Value>>) -> Vec<Vec<Setting>> {
    let defaults: Vec<Setting> =
        axes.iter().map(|(key, values)| (key.clone(), values[0].clone())).collect();
    let mut points = vec![defaults.clone()];
    for (index, values) in axes.values().enumerate() {
        for value in &values[1..] {
            let mut point = defaults.clone();
            point[index].1 = value.clone();
            points.push(point);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn points_of(text: &str) -> Result<Vec<Vec<Setting>>, Box<SuiteError>> {
        let source = Source::new(Path::new("s.toml"), text.to_owned());
        let table: toml::Table = text.parse().unwrap();
        let sweep = table.get("sweep").and_then(toml::Value::as_table);
        points(&sweep.cloned().unwrap_or_default(), &source)
    }

    #[test]
    fn a_sweep_gives_every_combination_or_one_at_a_time() {
        let axes = "\"a.b\" = [1, 2, 3]\nc.d = [4, 5]\n";
        assert_eq!(points_of(&format!("[sweep]\n{axes}")).unwrap().len(), 6);
        let single = points_of(&format!("[sweep]\nmode = 'one-at-a-time'\n{axes}")).unwrap();
        assert_eq!(single.len(), 4);
        assert_eq!(single[3], [("a.b".into(), 1.into()), ("c.d".into(), 5.into())]);
        assert_eq!(points_of("").unwrap(), [[]]);
        assert!(points_of("[sweep]\na = 3").is_err());
        let hundred = format!("{:?}", (0..100).collect::<Vec<_>>());
        let million = format!("[sweep]\na = {hundred}\nb = {hundred}\nc = {hundred}");
        assert!(points_of(&million).unwrap_err().to_string().contains("1000000 points; at most"));
    }

    #[test]
    fn settings_reach_tables_and_named_groups() {
        let mut table: toml::Table =
            "[workload]\nmix = {get=1}\n[[clients]]\nname='a'\n[[clients]]\nname='b'\nmix={a=1}"
                .parse()
                .unwrap();
        assign(&mut table, "workload.operation", "set".into()).unwrap();
        assign(&mut table, "clients.b.pipeline", 4.into()).unwrap();
        assign(&mut table, "clients.b.operation", "set".into()).unwrap();
        assert_eq!((table["workload"].get("mix"), table["clients"][1].get("mix")), (None, None));
        assert_eq!(table["clients"][1]["pipeline"].as_integer(), Some(4));
        assign(&mut table, "require.latency.p99", "< 1ms".into()).unwrap();
        assert_eq!(table["require"]["latency.p99"].as_str(), Some("< 1ms"));
        let error = assign(&mut table, "clients.pipeline", 4.into()).unwrap_err();
        assert!(error.contains("clients.NAME"), "{error}");
    }

    #[test]
    fn a_set_key_is_no_longer_swept() {
        let mut table: toml::Table = "[sweep]\n\"a.b\" = [1, 2]".parse().unwrap();
        let setting = parse_setting("a.b=7").unwrap();
        apply_settings(&mut table, &[setting]).unwrap();
        assert_eq!(table["a"]["b"].as_integer(), Some(7));
        assert!(table["sweep"].as_table().unwrap().is_empty());
        assert_eq!(parse_setting("x=5s").unwrap().1.as_str(), Some("5s"));
    }
}
