//! What a run was: its targets, its host and build, what was unseen, and how to run it again.

use maud::{Markup, html};
use serde_json::Value;

use crate::summary::Summary;

/// Targets, host, build, and how to run it again.
pub(super) fn section(summary: &Summary) -> Markup {
    let unseen: Vec<&String> = summary
        .fingerprint
        .json
        .iter()
        .filter(|(_, value)| value.is_null())
        .map(|(name, _)| name)
        .collect();
    let seen = summary.fingerprint.json.iter().filter(|(_, value)| !value.is_null());
    html! {
        section #about {
            h2 { "Host and suite" }
            h3 { "Run it again" }
            pre tabindex="0" { "loadline rerun " (summary.id) "\n# it was: " (summary.run.command) }
            h3 { "Targets" }
            dl.facts { @for target in &summary.targets {
                dt { (target.name) } dd { (target.description) }
            } }
            h3 { "Host and build" }
            @if !unseen.is_empty() {
                p.note {
                    "unseen on this host: "
                    (unseen.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "))
                }
            }
            dl.facts {
                dt { "loadline" } dd { (summary.run.version) }
                dt { "seed" } dd { (summary.run.seed) }
                @for (name, value) in seen { dt { (name) } dd { (words(value)) } }
            }
            details {
                summary { "The suite: " (summary.suite.path) }
                pre tabindex="0" { (summary.suite.text) }
            }
            @if !summary.run.settings.is_empty() {
                p { "Set beside the suite's text:" }
                pre tabindex="0" { @for (key, value) in &summary.run.settings {
                    (key) " = " (value) "\n"
                } }
            }
        }
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let pairs = map.iter().map(|(name, value)| format!("{name} {}", words(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
