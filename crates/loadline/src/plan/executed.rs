//! What a suite would execute, in the words of a shell and for programs: somebody else's suite is
//! a program, and is read before it is run.

use lab::plan::{Action, CountersOf, Event, Plan, Target, TargetKind};
use report::one_line;
use serde_json::{Value, json};

/// What is executed or asked for a target, by the key of the suite that says so.
pub(super) fn of(target: &Target) -> Vec<(&'static str, Value)> {
    let own = match &target.kind {
        TargetKind::Service(service, arguments) => {
            let words = ["loadline", "serve", service].map(str::to_owned);
            ("command", json!([&words, &arguments[..]].concat()))
        }
        TargetKind::Command(command) => ("command", json!(command)),
        TargetKind::Batch(command) => ("batch", json!(command)),
        TargetKind::Address(address) => ("address", json!(address.to_string())),
        TargetKind::InProcess => ("in_process", json!(target.speaks.dialect.name)),
    };
    let optional = [
        ("build", &target.build),
        ("setup", &target.setup),
        ("wrap", &target.wrap),
        ("client", &target.client),
    ];
    let optional = optional.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    let mut all = vec![own];
    all.extend(optional.map(|(key, command)| (key, json!(command))));
    if !target.env.is_empty() {
        all.push(("env", json!(target.env)));
    }
    match &target.counters {
        CountersOf::Dialect => {}
        CountersOf::Page(host, path, _) => {
            all.push(("counters", json!(format!("http://{host}{path}"))))
        }
        CountersOf::Nowhere => all.push(("counters", json!("none"))),
    }
    all
}

/// An event, for programs.
pub(super) fn of_event(event: &Event) -> Value {
    let mut about = json!({
        "name": event.name,
        "at_ns": event.at.ns,
        "every_ns": event.every.map(|every| every.ns),
        "target": event.target,
    });
    let (key, value) = match &event.action {
        Action::Stop(length) => ("stop_ns", json!(length.ns)),
        Action::Signal(_) => ("signal", json!(event.action.to_string())),
        Action::Command(command) => ("command", json!(command)),
    };
    about[key] = value;
    about
}

/// The events of all points in words, each once.
pub(super) fn events(plan: &Plan) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for event in plan.points.iter().flat_map(|point| &point.events) {
        let every = event.every.map(|every| format!(" and every {every}")).unwrap_or_default();
        let target = event.target.as_ref().map(|name| format!(" to {name}")).unwrap_or_default();
        let what = match &event.action {
            Action::Command(command) => shell(command),
            action => action.to_string(),
        };
        let when = format!("at {}{every}{target}: ", event.at);
        let lines = lines(&when, &what, "    ");
        if !all.contains(&lines) {
            all.push(lines);
        }
    }
    all
}

/// What a target executes as lines behind its name; `own` leaves out what starts it.
pub(super) fn text(executed: &[(&'static str, Value)], indent: &str) -> String {
    let line = |(key, value): &(&str, Value)| match value {
        Value::Object(variables) => {
            let words = variables.iter().map(|(name, value)| {
                let value = value.as_str().unwrap_or_default();
                format!("{name}={}", shell(&[value.to_owned()]))
            });
            words.map(|words| lines(&format!("{indent}{key:<9} "), &words, indent)).collect()
        }
        value => lines(&format!("{indent}{key:<9} "), &in_shell(value), indent),
    };
    executed.iter().map(line).collect::<Vec<String>>().concat()
}

/// A command as a shell reads it, or another value as it is.
pub(super) fn in_shell(value: &Value) -> String {
    match value {
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str).map(str::to_owned);
            shell(&words.collect::<Vec<_>>())
        }
        value => value.as_str().unwrap_or_default().to_owned(),
    }
}

fn shell(words: &[String]) -> String {
    let words = words.iter().map(String::as_str);
    shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
}

/// Lines of a text behind a head, each safe for a terminal; further ones stand below.
fn lines(head: &str, text: &str, indent: &str) -> String {
    let mut all = String::new();
    for (index, line) in text.lines().enumerate() {
        let head = if index == 0 { head.to_owned() } else { format!("{indent}          ") };
        all.push_str(&format!("{head}{}\n", one_line(line)));
    }
    all
}
