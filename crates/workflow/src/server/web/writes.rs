//! What changes something: each becomes requests of a client, which go through the owner and the
//! journal as a client's do.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::app::{App, Told};
use super::fault::Fault;
use super::json::rendered;
use super::reads::find;
use super::replaced::{self, Edit};
use crate::definition::{only_node, parse, parse_node};
use crate::protocol::{
    ADDED, Alteration, CHANGED, Child, Command, DELETED, Edit as Script, PathsCommand, Report,
    Requeue, ServerCommand, one_word,
};
use crate::server::dispatch::has_nul;

/// The members of a request's body.
pub(super) struct Members(Map<String, Value>);

impl Members {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is no object of JSON.
    pub(super) fn read(body: &[u8]) -> Result<Self, Fault> {
        let fix = "send a JSON object: /v1/openapi.json and docs/workflow.md list its members";
        if has_nul(body) {
            let message = "a text has the character NUL, at which ecFlow's clients end it";
            return Err(Fault::bad(message, "leave it out"));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(Fault::bad("the body is no object", fix)),
            Err(why) => Err(Fault::bad(format!("the body is not understood: {why}"), fix)),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A text; numbers and truths are taken as they are written.
    fn any(&self, name: &str) -> Result<Option<String>, Fault> {
        Ok(Some(match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(is_so)) => is_so.to_string(),
            Some(_) => {
                return Err(Fault::bad(format!("{name:?} is no text"), "write a text in \"…\""));
            }
        }))
    }

    /// A value, which may be a text, a number or a truth.
    fn value(&self, name: &str) -> Result<String, Fault> {
        let missing = || Fault::bad(format!("{name:?} is missing"), "add it to the body");
        self.any(name)?.ok_or_else(missing)
    }

    fn text(&self, name: &str) -> Result<String, Fault> {
        match self.0.get(name) {
            None | Some(Value::String(_)) => self.value(name),
            Some(_) => Err(Fault::bad(format!("{name:?} is no text"), "write a text in \"…\"")),
        }
    }

    fn or_empty(&self, name: &str) -> Result<String, Fault> {
        self.any(name).map(Option::unwrap_or_default)
    }

    fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.any(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Fault::bad(format!("{name:?} is no truth"), "write true or false")),
        }
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Fault> {
        let text = self.value(name)?;
        let bad = |_| Fault::bad(format!("{name:?} {text:?} is no number"), "write a number");
        text.parse().map_err(bad)
    }
}

fn done(app: &App, path: &str, message: &str) -> Result<Response, Fault> {
    app.sent(StatusCode::OK, rendered(&json!({ "path": path, "message": message }))?)
}

fn created(app: &App, path: &str, message: &str, at: &str) -> Result<Response, Fault> {
    let body = rendered(&json!({ "path": path, "message": message }))?;
    let mut answer = app.sent(StatusCode::CREATED, body)?;
    if let Ok(at) = HeaderValue::from_str(at) {
        answer.headers_mut().insert(header::LOCATION, at);
    }
    Ok(answer)
}

fn gone() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Adds the suites of a definition.
pub(super) async fn load(app: &Arc<App>, body: Members) -> Result<Response, Fault> {
    let definition = body.text("definition")?;
    let force = body.flag("force")?;
    let text = definition.clone();
    let names: Vec<String> = App::beside(move || {
        let parsed = parse(&text, "the definition").map_err(|why| invalid(&why))?.tree;
        Ok(parsed.suites().map(|id| parsed.node(id).name.to_string()).collect())
    })
    .await?;
    let Some(first) = names.first() else {
        return Err(Fault::bad("Invalid definition: it has no suite", "add a suite to it"));
    };
    let at = format!("/v1/suites/{first}/definition");
    app.user(Command::Load { force, definition, file: "http".to_owned() }).await?;
    created(app, &format!("/{first}"), "Suite(s) created successfully", &at)
}

fn invalid(why: &crate::definition::DefinitionError) -> Fault {
    Fault::bad(format!("Invalid definition: {why}"), "correct the definition")
}

/// Adds a node to one, or puts it in place of the one of its name.
pub(super) async fn define(app: &Arc<App>, path: String, body: Members) -> Result<Response, Fault> {
    let (text, force) = (body.text("definition")?, body.flag("force")?);
    let tree = app.look().await?.snapshot;
    let above = path.clone();
    let (at, definition) = App::beside(move || {
        let id = find(&tree, &above)?;
        let parsed = parse_node(&text, "the definition").map_err(|why| invalid(&why))?.tree;
        let new = only_node(&parsed).ok_or_else(|| {
            Fault::bad("Invalid definition: it has not one node", "state one family or task")
        })?;
        let name = &parsed.node(new).name;
        let at = format!("{above}/{name}");
        Ok((at, replaced::around(&tree, id, &text)))
    })
    .await?;
    let file = "http".to_owned();
    app.user(Command::Replace { creates: false, force, path: at, file, definition }).await?;
    done(app, &path, "Definition updated successfully")
}

pub(super) async fn delete(app: &Arc<App>, path: String, body: &[u8]) -> Result<Response, Fault> {
    let force = !body.is_empty() && Members::read(body)?.flag("force")?;
    app.user(Command::Delete { paths: vec![path], force }).await?;
    Ok(gone())
}

/// Who reports, of a job's request.
fn child(body: &Members) -> Result<Child, Fault> {
    Ok(Child {
        path: body.text("ECF_NAME")?,
        password: one_word(body.text("ECF_PASS")?),
        process_id: one_word(body.text("ECF_RID")?),
        try_no: body.number("ECF_TRYNO")?,
    })
}

async fn report(app: &App, body: &Members, path: &str, report: Report) -> Result<Told, Fault> {
    let child = child(body)?;
    if child.path != path {
        let message = format!("ECF_NAME is {}, and the path is {path}", child.path);
        return Err(Fault::bad(message, "send it to the task's own path"));
    }
    app.child(child, report).await
}

pub(super) async fn set_status(
    app: &Arc<App>,
    path: String,
    body: Members,
) -> Result<Response, Fault> {
    let action = body.text("action")?;
    if body.has("ECF_NAME") {
        let what = match action.as_str() {
            "init" => Report::Init(Vec::new()),
            "complete" => Report::Complete(Vec::new()),
            "abort" => Report::Abort(body.or_empty("abort_why")?),
            "wait" => Report::Wait(body.text("wait_expression")?),
            _ => {
                let message = format!("Invalid action for child command: {action}");
                return Err(Fault::bad(message, "write init, complete, abort or wait"));
            }
        };
        return match report(app, &body, &path, what).await? {
            Told::Wait => {
                let body = json!({ "path": path, "message": "not true yet: ask again" });
                app.sent(StatusCode::ACCEPTED, rendered(&body)?)
            }
            _ => done(app, &path, "Status changed successfully"),
        };
    }
    let command = by_user(&action, &path, &body)?;
    app.user(command).await?;
    done(app, &path, "Status changed successfully")
}

fn by_user(action: &str, path: &str, body: &Members) -> Result<Command, Fault> {
    let (recursive, force) = (body.flag("recursive")?, body.flag("force")?);
    let paths = vec![path.to_owned()];
    let of_paths = |command| Command::Paths { command, paths: paths.clone(), force };
    let to = |word: &str| Command::Force {
        paths: paths.clone(),
        word: word.to_owned(),
        recursive,
        repeats_to_last: false,
    };
    Ok(match action {
        "begin" if path.trim_matches('/').contains('/') => {
            let fix = "requeue it, or begin its suite";
            return Err(Fault::bad(format!("{path} is no suite: only suites are begun"), fix));
        }
        "begin" => Command::Begin { suite: path.trim_start_matches('/').to_owned(), force },
        "suspend" => of_paths(PathsCommand::Suspend),
        "resume" => of_paths(PathsCommand::Resume),
        "kill" => of_paths(PathsCommand::Kill),
        "status" => of_paths(PathsCommand::Status),
        "archive" => of_paths(PathsCommand::Archive),
        "restore" => of_paths(PathsCommand::Restore),
        "requeue" => {
            Command::Requeue { option: if force { Requeue::Force } else { Requeue::Node }, paths }
        }
        "execute" => Command::Run { paths, force: true },
        "run" => Command::Run { paths, force },
        "defstatus" => Command::Alter {
            paths,
            alteration: Alteration::Change("defstatus"),
            name: body.text("defstatus_value")?,
            value: String::new(),
        },
        "free" => {
            let (trigger, date, time) = (true, true, true);
            Command::FreeDependencies { paths, trigger, all: true, date, time }
        }
        "abort" => to("aborted"),
        "rerun" => to("queued"),
        "submit" => to("submitted"),
        "complete" | "unknown" | "queued" | "active" | "aborted" | "submitted" => to(action),
        _ => {
            let fix = "write abort, begin, complete, defstatus, execute, requeue, rerun, resume, \
                       submit, suspend, archive, restore, run, kill, status or free";
            return Err(Fault::bad(format!("Invalid action: {action:?}"), fix));
        }
    })
}

fn alter(path: &str, alteration: Alteration, name: &str, value: &str) -> Command {
    let (paths, name, value) = (vec![path.to_owned()], name.to_owned(), value.to_owned());
    Command::Alter { paths, alteration, name, value }
}

/// The word of a table that a type names.
fn word(words: &[&'static str], kind: &str) -> Result<&'static str, Fault> {
    let known = words.iter().find(|word| **word == kind && !word.is_empty());
    known.copied().ok_or_else(|| {
        let fix = "docs/workflow.md lists the types of attributes";
        Fault::bad(format!("Invalid type: {kind:?}"), fix)
    })
}

/// Whether an event is set.
fn is_set(value: &str) -> Result<bool, Fault> {
    match value {
        "set" | "true" => Ok(true),
        "clear" | "false" => Ok(false),
        _ => {
            let message = "'value' for event must be one of: set/true, clear/false";
            Err(Fault::bad(message, "correct the value"))
        }
    }
}

/// Puts a line into a node's definition, or takes one out, and has the node replaced by that:
/// `alter` has no word for it. States below begin anew.
async fn replace(app: &Arc<App>, path: &str, edit: Edit) -> Result<(), Fault> {
    let tree = app.look().await?.snapshot;
    let at = path.to_owned();
    let definition = App::beside(move || {
        let id = find(&tree, &at)?;
        replaced::edited(&tree, id, &edit)
    })
    .await?;
    let (path, file) = (path.to_owned(), "http".to_owned());
    app.user(Command::Replace { creates: false, force: false, path, file, definition }).await?;
    Ok(())
}

/// Attributes that a node has once at most, and that `alter` can't add.
const SINGLE: [&str; 4] = ["complete", "autocancel", "autoarchive", "autorestore"];

pub(super) async fn add(app: &Arc<App>, path: String, body: Members) -> Result<Response, Fault> {
    let (kind, value) = (body.text("type")?, body.value("value")?);
    match kind.as_str() {
        "meter" => {
            let name = body.text("name")?;
            let (min, max) = (body.number::<i32>("min")?, body.number::<i32>("max")?);
            let at = body.number::<i32>("value")?;
            replace(app, &path, Edit::Add(format!("meter {name} {min} {max} {max}"))).await?;
            if at != min {
                app.user(alter(&path, Alteration::Change("meter"), &name, &value)).await?;
            }
        }
        "event" => {
            let (name, is_set) = (body.text("name")?, is_set(&value)?);
            let word = if is_set { "set" } else { "clear" };
            let initial = if is_set { " set" } else { "" };
            replace(app, &path, Edit::Add(format!("event {name}{initial}"))).await?;
            app.user(alter(&path, Alteration::Change("event"), &name, word)).await?;
        }
        "cron" => replace(app, &path, Edit::Add(format!("cron {value}"))).await?,
        kind if SINGLE.contains(&kind) => {
            replace(app, &path, Edit::Add(format!("{kind} {value}"))).await?;
        }
        "time" | "today" | "date" | "day" | "late" | "zombie" => {
            let word = word(&ADDED, &kind)?;
            app.user(alter(&path, Alteration::Add(word), &value, "")).await?;
        }
        kind => {
            let (word, name) = (word(&ADDED, kind)?, body.text("name")?);
            app.user(alter(&path, Alteration::Add(word), &name, &value)).await?;
        }
    }
    let at = format!("/v1/suites{path}/attributes");
    created(app, &path, "Attribute added successfully", &at)
}

pub(super) async fn change(app: &Arc<App>, path: String, body: Members) -> Result<Response, Fault> {
    if body.has("ECF_NAME") {
        return reported(app, path, body).await;
    }
    let kind = body.text("type")?;
    let change =
        |word, name: &str, value: &str| alter(&path, Alteration::Change(word), name, value);
    match kind.as_str() {
        "repeat" | "late" | "trigger" | "complete" => {
            let value = body.value("value")?;
            app.user(change(word(&CHANGED, &kind)?, &value, "")).await?;
        }
        "time" | "today" => {
            let (old, new) = (body.text("old_value")?, body.value("value")?);
            app.user(change(word(&CHANGED, &kind)?, &old, &new)).await?;
        }
        "day" | "date" => {
            let (old, new) = (body.text("old_value")?, body.value("value")?);
            let (delete, add) = (word(&DELETED, &kind)?, word(&ADDED, &kind)?);
            app.user(alter(&path, Alteration::Delete(delete), &old, "")).await?;
            app.user(alter(&path, Alteration::Add(add), &new, "")).await?;
        }
        "cron" => {
            let (old, new) = (body.text("old_value")?, body.value("value")?);
            app.user(alter(&path, Alteration::Delete("cron"), &old, "")).await?;
            replace(app, &path, Edit::Add(format!("cron {new}"))).await?;
        }
        kind @ ("autocancel" | "autoarchive" | "autorestore") => {
            let line = format!("{kind} {}", body.value("value")?);
            replace(app, &path, Edit::Change(kind.to_owned(), line)).await?;
        }
        "limit" => {
            let name = body.text("name")?;
            let (word, value) = match (body.any("value")?, body.any("max")?) {
                (Some(value), _) => ("limit_value", value),
                (None, Some(max)) => ("limit_max", max),
                (None, None) => {
                    let message = "For limit either 'max' or 'value' must be defined";
                    return Err(Fault::bad(message, "add one of them to the body"));
                }
            };
            app.user(change(word, &name, &value)).await?;
        }
        kind => {
            let (word, name) = (word(&CHANGED, kind)?, body.text("name")?);
            let mut value = body.value("value")?;
            if kind == "event" {
                value = if is_set(&value)? { "set" } else { "clear" }.to_owned();
            }
            app.user(change(word, &name, &value)).await?;
        }
    }
    done(app, &path, "Attribute changed successfully")
}

/// What a job reports of an attribute.
async fn reported(app: &Arc<App>, path: String, body: Members) -> Result<Response, Fault> {
    let (kind, name) = (body.text("type")?, body.text("name")?);
    let action = body.or_empty("queue_action")?;
    let what = match kind.as_str() {
        "event" => Report::Event { name, is_set: is_set(&body.value("value")?)? },
        "meter" => Report::Meter { name, value: body.number("value")? },
        "label" => Report::Label { name, text: body.value("value")? },
        "queue" => {
            let (step, path) = (body.or_empty("queue_step")?, body.or_empty("queue_path")?);
            Report::Queue { name, action: body.text("queue_action")?, step, path }
        }
        _ => {
            let message = format!("Invalid action for child command: {kind}");
            return Err(Fault::bad(message, "write event, meter, label or queue"));
        }
    };
    let told = report(app, &body, &path, what).await?;
    let mut answer = json!({ "path": path, "message": "Attribute changed successfully" });
    let member = match action.as_str() {
        "active" => Some("step"),
        "no_of_aborted" => Some("no_of_aborted"),
        _ => None,
    };
    if let Some(member) = member.filter(|_| kind == "queue") {
        answer[member] = json!(told.text());
    }
    app.sent(StatusCode::OK, rendered(&answer)?)
}

pub(super) async fn remove(app: &Arc<App>, path: String, body: Members) -> Result<Response, Fault> {
    let kind = body.text("type")?;
    match kind.as_str() {
        "time" | "today" | "day" | "date" | "cron" => {
            let (word, value) = (word(&DELETED, &kind)?, body.value("value")?);
            app.user(alter(&path, Alteration::Delete(word), &value, "")).await?;
        }
        "late" | "complete" | "trigger" | "repeat" => {
            let word = word(&DELETED, &kind)?;
            app.user(alter(&path, Alteration::Delete(word), "", "")).await?;
        }
        kind @ ("autocancel" | "autoarchive" | "autorestore") => {
            replace(app, &path, Edit::Delete(kind.to_owned())).await?;
        }
        kind => {
            let (word, name) = (word(&DELETED, kind)?, body.text("name")?);
            app.user(alter(&path, Alteration::Delete(word), &name, "")).await?;
        }
    }
    Ok(gone())
}

pub(super) async fn set_script(
    app: &Arc<App>,
    path: String,
    body: Members,
) -> Result<Response, Fault> {
    let lines = body.text("script")?.lines().map(str::to_owned).collect();
    let (edit, variables) = (Script::SubmitFile, Vec::new());
    let at = path.clone();
    app.user(Command::EditScript { edit, path: at, lines, variables, alias: false, run: false })
        .await?;
    done(app, &path, "Script submitted successfully")
}

/// What is done to the server as a whole.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    ReloadWhitelistFile,
    ReloadPasswdFile,
    ReloadCustomPasswdFile,
    Restart,
    Shutdown,
    Halt,
    Checkpoint,
}

pub(super) async fn set_server(app: &Arc<App>, body: Members) -> Result<Response, Fault> {
    let action = body.text("action")?;
    let known: Action = serde_json::from_value(json!(action)).map_err(|_| {
        let fix = "write reload_whitelist_file, reload_passwd_file, reload_custom_passwd_file, \
                   restart, shutdown, halt or checkpoint";
        Fault::bad(format!("Invalid action: {action}"), fix)
    })?;
    let command = match known {
        Action::ReloadWhitelistFile => Command::Server(ServerCommand::ReloadWhiteList),
        Action::ReloadPasswdFile => Command::Server(ServerCommand::ReloadPasswords),
        Action::ReloadCustomPasswdFile => Command::Server(ServerCommand::ReloadCustomPasswords),
        Action::Restart => Command::Server(ServerCommand::Restart),
        Action::Shutdown => Command::Server(ServerCommand::Shutdown),
        Action::Halt => Command::Server(ServerCommand::Halt),
        Action::Checkpoint => Command::CheckPoint { mode: 3, interval: 0, alarm: 0 },
    };
    app.user(command).await?;
    done(app, "/", "Server updated successfully")
}

/// Only variables are attributes of the server.
fn variable(body: &Members) -> Result<String, Fault> {
    if body.text("type")? != "variable" {
        let message = "Only variables are attributes of the server";
        return Err(Fault::bad(message, "write \"type\": \"variable\""));
    }
    body.text("name")
}

async fn users_variable(app: &App, name: &str) -> Result<(), Fault> {
    let tree = app.look().await?.snapshot;
    if tree.server().user_variables.iter().any(|known| known.name == *name) {
        return Ok(());
    }
    let fix = "GET /v1/server/attributes shows all; those with const are the server's own";
    Err(Fault::new(StatusCode::NOT_FOUND, "User variable not found", fix))
}

pub(super) async fn add_to_server(app: &Arc<App>, body: Members) -> Result<Response, Fault> {
    let (name, value) = (variable(&body)?, body.value("value")?);
    app.user(alter("/", Alteration::Add("variable"), &name, &value)).await?;
    created(app, "/", "Attribute added successfully", "/v1/server/attributes")
}

pub(super) async fn change_server(app: &Arc<App>, body: Members) -> Result<Response, Fault> {
    let (name, value) = (variable(&body)?, body.value("value")?);
    users_variable(app, &name).await?;
    app.user(alter("/", Alteration::Change("variable"), &name, &value)).await?;
    done(app, "/", "Attribute changed successfully")
}

pub(super) async fn remove_from_server(app: &Arc<App>, body: Members) -> Result<Response, Fault> {
    let name = variable(&body)?;
    users_variable(app, &name).await?;
    app.user(alter("/", Alteration::Delete("variable"), &name, "")).await?;
    Ok(gone())
}
