//! Requests as lines of the log, in the words of ecFlow's own: as a user would type them.

use super::request::{
    Alteration, Body, Child, Command, HandleCommand, LogCommand, PathsCommand, Report, Request,
    SyncKind,
};
use super::words::{
    EDITS, FILE_KINDS, FLAGS, NODE_COMMANDS, ORDERS, PATHS_COMMANDS, REQUEUES, SERVER_COMMANDS,
    SYNC_KINDS, ZOMBIE_ACTIONS,
};

/// The word of a kind in its table.
fn word<T: PartialEq>(table: &[(T, &'static str)], kind: &T) -> &'static str {
    table.iter().find(|(one, _)| one == kind).map_or("", |(_, word)| word)
}

/// Words with a blank between two; empty ones are left out.
fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn texts(paths: &[String]) -> impl Iterator<Item = &str> {
    paths.iter().map(String::as_str)
}

/// An option with its value, where there is one.
fn with(option: &str, value: &str) -> String {
    if value.is_empty() { option.to_owned() } else { format!("{option}={value}") }
}

fn when(is_so: bool, word: &'static str) -> &'static str {
    if is_so { word } else { "" }
}

impl Request {
    /// The line of the log, without its time.
    pub fn line(&self) -> String {
        match &self.body {
            Body::Child(child, report) => report.line(child),
            Body::User(user, command) => {
                format!("{} :{}@{}", command.line(None), user.name, self.host)
            }
        }
    }

    /// The line of the log with one path in place of all: as a node's history has it.
    pub fn line_of(&self, path: &str) -> String {
        match &self.body {
            Body::Child(..) => self.line(),
            Body::User(user, command) => {
                format!("{} :{}@{}", command.line(Some(path)), user.name, self.host)
            }
        }
    }
}

impl Report {
    fn line(&self, child: &Child) -> String {
        let path = &child.path;
        match self {
            Self::Init(added) if added.is_empty() => format!("chd:init {path}"),
            Self::Init(added) => {
                let added: Vec<_> = added.iter().map(|(name, v)| format!("{name}={v}")).collect();
                format!("chd:init {path} --add {}", added.join(" "))
            }
            Self::Complete(removed) if removed.is_empty() => format!("chd:complete {path}"),
            Self::Complete(removed) => {
                format!("chd:complete {path} --remove {}", removed.join(" "))
            }
            Self::Abort(reason) => format!("chd:abort {path}  {reason}"),
            Self::Event { name, is_set } => {
                format!("chd:event {name} {} {path}", u8::from(*is_set))
            }
            Self::Meter { name, value } => format!("chd:meter {name} {value} {path}"),
            Self::Label { name, text } => format!("chd:label {name} '{text}' {path}"),
            Self::Wait(expression) => format!("chd:wait {expression} {path}"),
            Self::Queue { name, action, step, path: node } => {
                let node = if node.is_empty() { String::new() } else { format!(" {node}") };
                format!("chd:queue {name} {action} {step}{node} {path}")
            }
        }
    }
}

impl Command {
    /// The command as typed; with only one path, where one is named.
    fn line(&self, only: Option<&str>) -> String {
        let one: Vec<String> = only.iter().map(|path| (*path).to_owned()).collect();
        let paths = |all: &'_ [String]| -> Vec<String> {
            if only.is_some() { one.clone() } else { all.to_vec() }
        };
        match self {
            Self::Paths { command, paths: all, force } => {
                let option = format!("--{}", word(&PATHS_COMMANDS, command));
                let is_all = *command == PathsCommand::Check && all.is_empty();
                let force = when(*force && *command == PathsCommand::Archive, "force");
                let words = [option.as_str(), when(is_all, "_all_"), force];
                join(words.into_iter().chain(texts(&paths(all))))
            }
            Self::Delete { paths: all, force } => {
                let none = when(all.is_empty(), "_all_");
                let words = ["--delete", none, when(*force, "force"), "yes"];
                join(words.into_iter().chain(texts(&paths(all))))
            }
            Self::Requeue { paths: all, option } => {
                let words = ["--requeue", word(&REQUEUES, option)];
                join(words.into_iter().chain(texts(&paths(all))))
            }
            Self::Run { paths: all, force } => {
                join(["--run", when(*force, "force")].into_iter().chain(texts(&paths(all))))
            }
            Self::Force { paths: all, word, recursive, repeats_to_last } => {
                let option = format!("--force={word}");
                let words = [
                    option.as_str(),
                    when(*recursive, "recursive"),
                    when(*repeats_to_last, "full"),
                ];
                join(words.into_iter().chain(texts(&paths(all))))
            }
            Self::FreeDependencies { paths: some, trigger, all, date, time } => {
                let words = [
                    "--free-dep",
                    when(*all, "all"),
                    when(*trigger && !*all, "trigger"),
                    when(*date && !*all, "date"),
                    when(*time && !*all, "time"),
                ];
                join(words.into_iter().chain(texts(&paths(some))))
            }
            Self::Alter { paths: all, alteration, name, value } => {
                let (what, attribute) = match alteration {
                    Alteration::Add(word) => ("add", *word),
                    Alteration::Delete(word) => ("delete", *word),
                    Alteration::Change(word) => ("change", *word),
                    Alteration::Flag(bit, true) => ("set_flag", FLAGS[usize::from(*bit)]),
                    Alteration::Flag(bit, false) => ("clear_flag", FLAGS[usize::from(*bit)]),
                    Alteration::Sort => ("sort", ""),
                };
                let words = ["--alter", what, attribute, name, value];
                join(words.into_iter().chain(texts(&paths(all))))
            }
            _ => self.plain_line(),
        }
    }

    /// A command without several paths.
    fn plain_line(&self) -> String {
        match self {
            Self::Server(command) => format!("--{}", word(&SERVER_COMMANDS, command)),
            Self::Version => "--server_version".to_owned(),
            Self::Show => "show".to_owned(),
            Self::Node(command, path) => {
                with(&format!("--{}", word(&NODE_COMMANDS, command)), path)
            }
            Self::CheckPoint { mode, interval, alarm } => check_point(*mode, *interval, *alarm),
            Self::Sync { kind, handle, state_change_no, modify_change_no } => {
                let option = format!("--{}={handle}", word(&SYNC_KINDS, kind));
                match kind {
                    SyncKind::Full => option,
                    _ => format!("{option} {state_change_no} {modify_change_no}"),
                }
            }
            Self::Handle(command) => handle(command),
            Self::Log(command) => log(command),
            Self::Message(text) => format!("--msg={text}"),
            Self::Begin { suite, force } => match (suite.is_empty(), force) {
                (true, true) => "--begin=--force".to_owned(),
                (_, force) => join([with("--begin", suite).as_str(), when(*force, "--force")]),
            },
            Self::Zombie { action, process_id, password, paths } => {
                let first = paths.first().map_or("", String::as_str);
                let option = format!("--zombie_{}={first}", word(&ZOMBIE_ACTIONS, action));
                let rest = texts(paths).skip(1).chain([process_id.as_str(), password]);
                join([option.as_str()].into_iter().chain(rest))
            }
            Self::Order { path, order } => format!("--order={path} {}", word(&ORDERS, order)),
            Self::Load { force, file, .. } => {
                join([format!("--load={file}").as_str(), when(*force, "force")])
            }
            Self::Replace { creates, force, path, file, .. } => {
                let file = if file.is_empty() { "<empty>" } else { file };
                let option = format!("--replace={path}");
                join([option.as_str(), file, when(*creates, "parent"), when(*force, "force")])
            }
            Self::File { kind, path, max_lines } => {
                format!("--file={path} {} {max_lines}", word(&FILE_KINDS, kind))
            }
            Self::EditScript { edit, path, alias, run, .. } => {
                let option = format!("--edit_script={path}");
                let alias = when(*alias, "create_alias");
                join([option.as_str(), word(&EDITS, edit), alias, when(!*run, "no_run")])
            }
            Self::Plug { source, destination } => format!("--plug={source} {destination}"),
            Self::Move { host, port, path, destination, .. } => {
                format!("Plug(Move) source({host}:{port}:{path}) destination({destination})")
            }
            Self::Query { kind, path, attribute, task } => {
                let between = if kind == "trigger" { " " } else { ":" };
                let between = if attribute.is_empty() { "" } else { between };
                format!("--query={kind} {path}{between}{attribute}{task}")
            }
            Self::Group(requests) => {
                let lines: Vec<String> = requests.iter().map(Request::plain).collect();
                format!("--group={}", lines.join("; "))
            }
            _ => String::new(),
        }
    }
}

impl Request {
    /// The line without the user.
    fn plain(&self) -> String {
        match &self.body {
            Body::Child(child, report) => report.line(child),
            Body::User(_, command) => command.line(None),
        }
    }
}

fn check_point(mode: i64, interval: i64, alarm: i64) -> String {
    let mode = ["never", "on_time", "always"].get(usize::try_from(mode).unwrap_or(3));
    let mut line = "--check_pt".to_owned();
    if mode.is_some() || interval != 0 || alarm != 0 {
        line.push('=');
    }
    line.push_str(mode.copied().unwrap_or_default());
    if interval != 0 {
        line.push_str(when(mode.is_some(), ":"));
        line.push_str(&interval.to_string());
    } else if mode.is_none() && alarm != 0 {
        line.push_str("alarm");
    }
    if alarm != 0 {
        line.push_str(&format!(":{alarm}"));
    }
    line
}

fn handle(command: &HandleCommand) -> String {
    let all = |option: String, suites: &[String]| {
        join([option.as_str()].into_iter().chain(texts(suites)))
    };
    match command {
        HandleCommand::Register { suites, takes_new } => {
            all(format!("--ch_register={takes_new}"), suites)
        }
        HandleCommand::Drop(handle) => format!("--ch_drop={handle}"),
        HandleCommand::DropUser(user) => with("--ch_drop_user", user),
        HandleCommand::Add(handle, suites) => all(format!("--ch_add={handle}"), suites),
        HandleCommand::Remove(handle, suites) => all(format!("--ch_rem={handle}"), suites),
        HandleCommand::AutoAdd(handle, is_on) => format!("--ch_auto_add={handle} {is_on}"),
        HandleCommand::Suites => "--ch_suites".to_owned(),
    }
}

fn log(command: &LogCommand) -> String {
    match command {
        LogCommand::Get(lines) => format!("--log=get {lines}"),
        LogCommand::Clear => "--log=clear".to_owned(),
        LogCommand::Flush => "--log=flush".to_owned(),
        LogCommand::New(path) => join(["--log=new", path]),
        LogCommand::Path => "--log=path".to_owned(),
    }
}
