//! The conditions of a run: its targets, host and build, what was unseen, and how to repeat it.

use findings::Summary;
use maud::{Markup, html};
use serde_json::Value;

use super::budget::{Budget, clipped, fit};
use super::page::rest;

/// Targets, host, build, and the command that repeats it.
pub(super) fn section(summary: &Summary, budget: Budget) -> Markup {
    let (seen, unseen): (Vec<_>, Vec<_>) =
        summary.fingerprint.json.iter().partition(|(_, value)| !value.is_null());
    let unseen: Vec<&str> = unseen.iter().map(|(name, _)| name.as_str()).collect();
    let pair = |name: &str, text: &str| html! { dt { (clipped(name)) } dd { (fit(text, 2_000)) } };
    let targets = summary.targets.iter().map(|one| pair(&one.name, &one.description));
    let (targets, more_targets) = budget.share(10_000).list(targets);
    let facts = seen.iter().map(|(name, value)| pair(name, &said(value)));
    let (facts, more_facts) = budget.share(12_000).list(facts);
    let settings = summary.run.settings.iter();
    let settings = settings.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>();
    html! {
        section {
            h2 { "Host and suite" }
            h3 { "Run it again" }
            pre tabindex="0" {
                "loadline rerun " (summary.id) "\n# it was: " (fit(&summary.run.command, 3_000))
            }
            h3 { "Targets" }
            dl.facts { (targets) }
            (rest(summary, more_targets, "targets"))
            h3 { "Host and build" }
            @if !unseen.is_empty() {
                p.note { "unseen on this host: " (fit(&unseen.join(", "), 2_000)) }
            }
            dl.facts {
                dt { "loadline" } dd { (clipped(&summary.run.version)) }
                dt { "seed" } dd { (summary.run.seed) }
                (facts)
            }
            (rest(summary, more_facts, "facts"))
            @if !settings.is_empty() {
                h3 { "Set beside the suite's text" }
                pre tabindex="0" { (fit(&settings, 3_000)) }
            }
            details {
                summary { "The suite: " (clipped(&summary.suite.path)) }
                pre tabindex="0" { (fit(&summary.suite.text, 14_000)) }
            }
        }
    }
}

fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(said).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let pairs = map.iter().map(|(name, value)| format!("{name} {}", said(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
