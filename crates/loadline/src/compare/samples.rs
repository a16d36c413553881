//! `loadline compare --samples FILE FILE`: figures that were measured elsewhere.
//!
//! A file holds numbers as text, or as JSON; `FILE#PATH` names the array in it.

use std::path::Path;

use findings::Series;

/// At most this many bytes are read of a file.
const FILE_LIMIT_BYTES: u64 = 64 << 20;

/// At most this many figures of a file: every one is compared with every other.
const MAX_FIGURES: usize = 2_000;

/// Reads the figures of `FILE` or `FILE#NAME`.
pub(super) fn read(argument: &str) -> Result<Series, String> {
    let (file, name) = match argument.rsplit_once('#') {
        Some((file, name)) if !Path::new(argument).exists() => (file, Some(name)),
        _ => (argument, None),
    };
    let text = base::read_text(Path::new(file), FILE_LIMIT_BYTES);
    let text = text.map_err(|error| error.to_string())?;
    let figures = if text.trim_start().starts_with(['[', '{']) {
        of_json(&text, name)
    } else if let Some(name) = name {
        Err(format!("it is no JSON, so there is no \"{name}\" in it"))
    } else {
        of_text(&text)
    };
    let figures = figures.map_err(|problem| format!("{file}: {problem}"))?;
    if figures.is_empty() {
        return Err(format!("{file}: there is no number in it"));
    }
    if figures.len() > MAX_FIGURES {
        let found = figures.len();
        return Err(format!("{file}: {found} numbers are more than {MAX_FIGURES}; thin them out"));
    }
    Ok(Series { name: argument.to_owned(), figures })
}

/// Numbers between spaces, commas, semicolons and line ends; `#` begins a remark.
fn of_text(text: &str) -> Result<Vec<f64>, String> {
    let mut figures = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        let words = words.split('#').next().unwrap_or_default();
        let words = words.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
        for word in words.filter(|word| !word.is_empty()) {
            figures.push(number(word).map_err(|problem| format!("line {line}: {problem}"))?);
        }
    }
    Ok(figures)
}

/// An array of numbers, at the path if one is given: `results.0.times`.
fn of_json(text: &str, path: Option<&str>) -> Result<Vec<f64>, String> {
    let whole: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let mut value = &whole;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        let next = match value {
            serde_json::Value::Array(items) => part.parse().ok().and_then(|i: usize| items.get(i)),
            value => value.get(part),
        };
        value = next.ok_or_else(|| format!("there is no \"{part}\" of the path in it"))?;
    }
    let items = value.as_array().ok_or_else(|| {
        "name the path to an array of numbers, such as FILE#results.0.times".to_owned()
    })?;
    let read = |(place, item): (usize, &serde_json::Value)| {
        let found = item.as_f64().filter(|number| number.is_finite());
        found.ok_or_else(|| format!("item {place} is {item}, no number"))
    };
    items.iter().enumerate().map(read).collect()
}

fn number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("\"{word}\" is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_text_and_json() {
        assert_eq!(of_text("12.35, 12.41\n# remark\n12.42;12.33 1e1").unwrap().len(), 5);
        assert_eq!(of_json("[1, 2.5]", None).unwrap(), [1.0, 2.5]);
        let hyperfine = r#"{"results": [{"times": [0.1, 0.2]}]}"#;
        assert_eq!(of_json(hyperfine, Some("results.0.times")).unwrap(), [0.1, 0.2]);
    }

    #[test]
    fn what_is_no_number_is_named_with_its_line() {
        assert_eq!(of_text("1\n2 x").unwrap_err(), "line 2: \"x\" is no number");
        assert!(of_text("nan").is_err() && of_text("inf").is_err());
        assert!(of_json("[1, \"x\"]", None).unwrap_err().contains("item 1"));
        assert!(of_json("{\"a\": 1}", Some("a")).unwrap_err().contains("path to an array"));
    }
}
