//! The commands of users.

use crate::model::{
    Free, Instant, NodeId, Order as To, Rules, ServerState, Snapshot, State, Which,
    ZombieAction as Action,
};
use crate::protocol::{
    Alteration, Command, HandleCommand, NodeCommand, Order, PathsCommand, Reply, Request, Requeue,
    ServerCommand, Standard, Stats, ZombieAction,
};

use super::archives::{add_zombies, check_idle, restore_checkpoint};
use super::edit::{Asked, edit_script};
use super::history::{Line, remember};
use super::parts::{CommandKind, Parts, Told, number_of};
use super::signals::{shell, zombies};
use super::{alter, archives, check, file, get, nodes, plug, query, sync, text};

/// Carries a command out.
pub(super) fn command(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    user: &str,
    request: &Request,
    command: &Command,
) -> Told {
    if is_of_root(command) {
        remember(parts, rules, request, "/");
    }
    leave_jobs(parts, rules, command);
    if let Some(done) = with_others(parts, rules, request, command) {
        return done.unwrap_or_else(|why| Told::Reply(Reply::Error(why)));
    }
    let done = match command {
        Command::Server(command) => return server(parts, rules, *command),
        Command::Version => Ok(Reply::Text(crate::server::environment::ECFLOW_VERSION.to_owned())),
        Command::CheckPoint { .. } | Command::Message(_) | Command::Show | Command::Log(_) => {
            Ok(Reply::OK)
        }
        Command::Sync { kind, handle, state_change_no, modify_change_no } => {
            let known = (*state_change_no, *modify_change_no);
            return sync::sync(parts, rules.tree, *kind, *handle, known);
        }
        Command::Handle(HandleCommand::Suites) => {
            let listed = parts.handles.listed();
            return Told::Later(Box::new(listed));
        }
        Command::Handle(command) => Ok(parts.handles.command(user, command)),
        Command::Node(command, path) => return node(parts, rules, *command, path),
        Command::File { kind, path, max_lines } => {
            return file::file(rules.tree, *kind, path, *max_lines);
        }
        Command::Query { kind, path, attribute, .. } => {
            return queried(rules.tree, kind, path, attribute);
        }
        Command::Paths { command: PathsCommand::History, paths, .. } => {
            return histories(rules.tree.snapshot(), paths.clone());
        }
        Command::Group(all) => return group(parts, rules, all),
        Command::Load { force, definition, .. } => nodes::load(parts, rules, definition, *force)
            .map(|names| {
                parts.handles.added(&names);
                Reply::OK
            }),
        Command::Replace { creates, force, path, definition, .. } => {
            nodes::replace(parts, rules, path, definition, (*creates, *force)).map(|()| {
                parts.handles.added(&[path.trim_start_matches('/').to_owned()]);
                Reply::OK
            })
        }
        Command::Begin { suite, force } => {
            let done = match suite.trim_start_matches('/') {
                "" => rules.begin_all(*force),
                suite => rules.begin(suite, *force),
            };
            done.map(|()| Reply::OK).map_err(|why| why.to_string())
        }
        Command::Zombie { action, process_id, password, paths } => {
            let action = match action {
                ZombieAction::Fob => Action::Fob,
                ZombieAction::Fail => Action::Fail,
                ZombieAction::Adopt => Action::Adopt,
                ZombieAction::Remove => Action::Remove,
                ZombieAction::Block => Action::Block,
                ZombieAction::Kill => Action::Kill,
            };
            zombies(parts, rules, (process_id, password), paths, action).map(|()| Reply::OK)
        }
        Command::Delete { paths, force } => delete(parts, rules, paths, *force),
        _ => of_nodes(parts, rules, request, command),
    };
    Told::Reply(done.unwrap_or_else(Reply::Error))
}

/// Answers a query: on another thread, where that is long.
fn queried(tree: &Snapshot, kind: &str, path: &str, name: &str) -> Told {
    if query::is_long(tree, kind, path, name) {
        let (tree, all) = (tree.clone(), [kind, path, name].map(str::to_owned));
        return Told::Later(Box::new(move || {
            let [kind, path, name] = all;
            query::query(&tree, &kind, &path, &name).map_or_else(Reply::Error, Reply::Text)
        }));
    }
    Told::Reply(query::query(tree, kind, path, name).map_or_else(Reply::Error, Reply::Text))
}

/// What users have done to nodes.
fn histories(tree: Snapshot, paths: Vec<String>) -> Told {
    Told::Later(Box::new(move || {
        let lines = paths.iter().flat_map(|path| tree.history(path));
        Reply::Texts(lines.map(ToString::to_string).collect())
    }))
}

/// Commands that other threads have a part in.
fn with_others(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    command: &Command,
) -> Option<Result<Told, String>> {
    Some(match command {
        Command::Paths { command: PathsCommand::Archive, paths, force } => {
            archives::archive(parts, rules, request, (paths, *force))
        }
        Command::Paths { command: PathsCommand::Restore, paths, .. } => {
            archives::restore(parts, rules, request, paths)
        }
        Command::Paths { command: PathsCommand::Check, paths, .. } => {
            Ok(check::check(parts, rules.tree, paths))
        }
        Command::Plug { source, destination } => {
            plug::plug(parts, rules, request, (source, destination))
        }
        Command::Move { node, destination, .. } => {
            plug::take(parts, rules, request, (node, destination))
        }
        Command::EditScript { edit, path, lines, variables, alias, run } => {
            let (edit, alias, run) = (*edit, *alias, *run);
            let asked = Asked { edit, path, lines, variables, alias, run };
            edit_script(parts, rules, request, &asked)
        }
        _ => return None,
    })
}

/// Whether a command changes something and is of no node: the server's history has it.
const fn is_of_root(command: &Command) -> bool {
    matches!(
        command,
        Command::Load { .. }
            | Command::Begin { .. }
            | Command::Delete { .. }
            | Command::Replace { .. }
            | Command::Server(
                ServerCommand::Restart
                    | ServerCommand::Shutdown
                    | ServerCommand::Halt
                    | ServerCommand::EvaluateAll
            )
    )
}

/// A path of a request, and the node of the path before it.
type At<'a> = (&'a str, Option<NodeId>);

/// The node at a path.
fn find(rules: &Rules<'_>, (path, before): At<'_>, who: &str) -> Result<NodeId, String> {
    let found = match before {
        Some(before) => rules.tree.find_beside(path, before),
        None => rules.tree.find(path),
    };
    let found = found.filter(|id| *id != NodeId::ROOT);
    // As in ecFlow, which quotes it in some.
    let quote = if who.starts_with("PathsCmd") { "'" } else { "" };
    found.ok_or_else(|| format!("{who}Could not find node at path {quote}{path}{quote}"))
}

/// Commands for each of several nodes, of which those that are there are carried out.
fn of_nodes(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    request: &Request,
    command: &Command,
) -> Result<Reply, String> {
    let paths: &[String] = match command {
        Command::Order { path, order } => {
            let found = rules.tree.find(path).filter(|id| *id != NodeId::ROOT);
            let id = found.ok_or_else(|| text::no_node(path))?;
            rules
                .order(
                    id,
                    match order {
                        Order::Top => To::Top,
                        Order::Bottom => To::Bottom,
                        Order::Alpha => To::Alphabetic,
                        Order::Reverse => To::Reverse,
                        Order::Up => To::Up,
                        Order::Down => To::Down,
                        Order::RunTime => To::Runtime,
                    },
                )
                .map_err(|why| why.to_string())?;
            remember(parts, rules, request, path);
            return Ok(Reply::OK);
        }
        Command::Paths { paths, .. }
        | Command::Requeue { paths, .. }
        | Command::Run { paths, .. }
        | Command::Force { paths, .. }
        | Command::FreeDependencies { paths, .. }
        | Command::Alter { paths, .. } => paths,
        _ => return Err("this request is not served yet".to_owned()),
    };
    let mut errors = String::new();
    let (number, is_tried) = (rules.tree.state_change_no(), may_change_nothing(command));
    let is_event = |word: &str| matches!(word, "set" | "clear");
    let is_event = matches!(command, Command::Force { word, .. } if is_event(word));
    let (mut line, mut before, mut tried) = (Line::new(parts, request), None, Vec::new());
    for path in paths {
        let done = of_node(parts, rules, (path, before), command);
        let own = path.split(':').next().unwrap_or(path);
        let node = match &done {
            Ok(id) => Some(*id),
            // A kill that is refused has set a flag; an event that isn't there is asked for.
            Err(_) if is_tried || is_event && own != path => rules.tree.find(own),
            Err(_) => None,
        };
        let node = node.filter(|id| *id != NodeId::ROOT || path == "/");
        match node {
            Some(id) if is_tried => tried.push((own, id)),
            Some(id) => line.remember(rules, own, id),
            None => {}
        }
        match done {
            Ok(id) => before = Some(id),
            // As in ecFlow it ends the command, and is all that is answered.
            Err(why) if is_of_begun(command) && !is_begun(rules.tree, path) => {
                errors = format!("{why}\n");
                break;
            }
            Err(why) => {
                errors.push_str(&why);
                // As in ecFlow the last one's is taken off where it is answered.
                errors.push('\n');
            }
        }
    }
    if rules.tree.state_change_no() != number {
        tried.into_iter().for_each(|(path, id)| line.remember(rules, path, id));
    }
    if errors.is_empty() { Ok(Reply::OK) } else { Err(errors) }
}

/// Whether a command asks for suites that have begun.
fn is_of_begun(command: &Command) -> bool {
    let is_status = matches!(command, Command::Paths { command: PathsCommand::Status, .. });
    is_status || matches!(command, Command::Run { .. } | Command::Requeue { .. })
}

/// Whether the suite of a path has begun; true where there is none.
fn is_begun(tree: &Snapshot, path: &str) -> bool {
    let suite = tree.find(path).and_then(|id| tree.suite(id));
    suite.is_none_or(|suite| tree.node(suite).is_begun)
}

/// Whether a command may leave all as it is, as where no job runs, or nothing is there to be freed:
/// then there is nothing to remember. Where something has changed, all its nodes have it.
fn may_change_nothing(command: &Command) -> bool {
    match command {
        Command::Paths { command: PathsCommand::Kill | PathsCommand::Status, .. }
        | Command::FreeDependencies { .. }
        | Command::Alter { alteration: Alteration::Delete("limit_path"), .. } => true,
        Command::Alter { paths, .. } => paths.iter().any(|path| path == "/"),
        _ => false,
    }
}

fn of_path(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    at: At<'_>,
    command: PathsCommand,
) -> Result<NodeId, String> {
    let who = match command {
        PathsCommand::Suspend => "PathsCmd:Suspend: ",
        PathsCommand::Resume => "PathsCmd:Resume: ",
        PathsCommand::Kill => "PathsCmd:Kill: ",
        PathsCommand::Status => "PathsCmd:Status: ",
        _ => "PathsCmd: ",
    };
    let id = find(rules, at, who)?;
    match command {
        PathsCommand::Suspend => rules.suspend(id),
        PathsCommand::Resume => rules.resume(id),
        PathsCommand::Kill => shell(parts, rules, id, CommandKind::Kill)?,
        PathsCommand::Status => shell(parts, rules, id, CommandKind::Status)?,
        _ => {}
    }
    Ok(id)
}

/// Carries a command out for one of its paths, and returns the node.
fn of_node(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    (path, before): At<'_>,
    command: &Command,
) -> Result<NodeId, String> {
    let at = (path, before);
    Ok(match command {
        Command::Paths { command, .. } => of_path(parts, rules, at, *command)?,
        Command::Requeue { option, .. } => {
            let id = find(rules, at, "RequeueNodeCmd: ")?;
            let which = match option {
                Requeue::Node => Which::Idle,
                Requeue::Aborted => Which::Aborted,
                Requeue::Force => Which::All,
            };
            let who = "RequeueNodeCmd::doHandleRequest: For node";
            rules.requeue(id, which).map_err(|why| format!("{who} {path}. {why}"))?;
            id
        }
        Command::Run { force, .. } => {
            let id = find(rules, at, "RunNodeCmd: ")?;
            let who = "RunNodeCmd failed: For";
            rules.run(id, *force).map_err(|why| format!("{who} {path}. {why}"))?;
            id
        }
        Command::Force { word, recursive, repeats_to_last, .. } => {
            let is_of_event = matches!(word.as_str(), "set" | "clear");
            if let Some((node, event)) = path.split_once(':').filter(|_| is_of_event) {
                let id = find(rules, (node, before), "ForceCmd: ")?;
                if !rules.set_event(id, event, word == "set") {
                    return Err(format!(
                        "ForceCmd: force {word}: failed for node({node}) cannot find event({event})"
                    ));
                }
                return Ok(id);
            }
            let id = find(rules, at, "ForceCmd: ")?;
            let state = State::of_word(word).ok_or_else(|| format!("{word:?} is no state"))?;
            if *repeats_to_last {
                rules.end_repeats(id);
            }
            rules.force(id, state, *recursive);
            id
        }
        Command::FreeDependencies { trigger, all, date, time, .. } => {
            let id = find(rules, at, "FreeDepCmd: ")?;
            let free = Free { trigger: *trigger || *all, date: *date || *all, time: *time || *all };
            rules.free(id, free);
            id
        }
        Command::Alter { alteration, name, value, .. } if path == "/" => {
            alter::alter_server(parts, rules, *alteration, name, value)?;
            NodeId::ROOT
        }
        Command::Alter { alteration, name, value, .. } => {
            let id = find(rules, at, "AlterCmd: ")?;
            alter::alter(rules, id, *alteration, name, value)?;
            id
        }
        _ => find(rules, at, "")?,
    })
}

/// Jobs that a command leaves without their task are zombies from here on.
fn leave_jobs(parts: &mut Parts<'_>, rules: &mut Rules<'_>, command: &Command) {
    let (word, paths) = match command {
        Command::Requeue { option: Requeue::Force, paths } => ("requeue", &paths[..]),
        Command::Run { force: true, paths } => ("run", &paths[..]),
        Command::Replace { force: true, path, .. } => ("replace", std::slice::from_ref(path)),
        Command::Begin { force: true, suite } => ("begin", std::slice::from_ref(suite)),
        Command::Force { word, paths, .. }
            if !matches!(word.as_str(), "active" | "submitted" | "set" | "clear") =>
        {
            ("force", &paths[..])
        }
        _ => return,
    };
    for path in paths {
        // A suite is named without its slash.
        let id = rules.tree.find(&format!("/{}", path.trim_start_matches('/')));
        if let Some(id) = id {
            add_zombies(parts, rules, id, word);
        }
    }
}

fn delete(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    paths: &[String],
    force: bool,
) -> Result<Reply, String> {
    let mut errors = String::new();
    let mut gone = Vec::new();
    for path in paths {
        match rules.tree.find(path).filter(|id| *id != NodeId::ROOT) {
            Some(id) => gone.push(id),
            None => errors
                .push_str(&format!("DeleteCmd:Delete: Could not find node at path '{path}'\n")),
        }
    }
    let all = if paths.is_empty() { vec![None] } else { gone.into_iter().map(Some).collect() };
    for id in all {
        if force {
            add_zombies(parts, rules, id.unwrap_or(NodeId::ROOT), "delete");
        } else {
            check_idle(rules.tree, id)?;
        }
    }
    if paths.is_empty() {
        rules.delete_all();
        return Ok(Reply::Standard(Standard::DeleteAll));
    }
    for path in paths {
        // It may have been below one of the others.
        if let Some(id) = rules.tree.find(path).filter(|id| *id != NodeId::ROOT) {
            rules.delete(id);
        }
    }
    if errors.is_empty() { Ok(Reply::OK) } else { Err(errors) }
}

fn server(parts: &mut Parts<'_>, rules: &mut Rules<'_>, command: ServerCommand) -> Told {
    if command == ServerCommand::Restore {
        return restore_checkpoint(parts, rules);
    }
    Told::Reply(match command {
        ServerCommand::Zombies => {
            let rows = parts.zombies.rows(parts.at_us);
            return Told::Later(Box::new(|| Reply::Zombies(rows())));
        }
        ServerCommand::Restart | ServerCommand::Shutdown | ServerCommand::Halt => {
            let state = match command {
                ServerCommand::Restart => ServerState::Running,
                ServerCommand::Shutdown => ServerState::Shutdown,
                _ => ServerState::Halted,
            };
            rules.set_server_state(state);
            Reply::OK
        }
        ServerCommand::EvaluateAll => {
            rules.resolve_all();
            Reply::OK
        }
        ServerCommand::Suites => {
            let suites = rules.tree.suites().map(|id| rules.tree.node(id).name.to_string());
            Reply::Suites(suites.collect())
        }
        ServerCommand::LoadGraph => Reply::LogPath(parts.log_file.to_owned()),
        ServerCommand::Stats | ServerCommand::StatsText => {
            let stats = stats(parts, rules);
            if command == ServerCommand::Stats {
                Reply::Stats(Box::new(stats))
            } else {
                Reply::Text(parts.statistics.text(&stats))
            }
        }
        ServerCommand::StatsReset => {
            parts.statistics.reset();
            Reply::OK
        }
        ServerCommand::ReloadWhiteList
        | ServerCommand::ReloadPasswords
        | ServerCommand::ReloadCustomPasswords => {
            Reply::error("a file is read again by a command of its own, not in a group")
        }
        _ => Reply::OK,
    })
}

/// What the server tells of itself.
fn stats(parts: &Parts<'_>, rules: &Rules<'_>) -> Stats {
    let environment = parts.environment;
    Stats {
        state: number_of(rules.tree.server().state),
        host: environment.host.clone(),
        port: environment.port.to_string(),
        up_since: text::instant(parts.started_us),
        version: crate::server::environment::VERSION_LINE.to_owned(),
        job_interval: environment.interval_s.into(),
        check_interval: parts.checks.interval_s,
        check_alarm: parts.checks.alarm_s,
        check_mode: parts.checks.mode.number(),
        suites: i64::try_from(rules.tree.suites().count()).unwrap_or(i64::MAX),
        rates: parts.statistics.rates(environment.interval_s),
        home: environment.home.display().to_string(),
        check_file: environment.check.display().to_string(),
        log_file: parts.log_file.to_owned(),
        encryption: environment.encryption(),
        counters: parts.statistics.sent(),
    }
}

fn node(parts: &mut Parts<'_>, rules: &mut Rules<'_>, command: NodeCommand, path: &str) -> Told {
    let snapshot = rules.tree.snapshot();
    match command {
        NodeCommand::Why => return Told::Reply(Reply::OK),
        NodeCommand::Submit => {
            let is_running = rules.tree.server().state == ServerState::Running;
            let found = rules.tree.find(path).filter(|id| *id != NodeId::ROOT);
            if is_running && !path.is_empty() && found.is_none() {
                return Told::Reply(Reply::error(text::no_node(path)));
            }
            rules.resolve_all();
            return Told::Reply(Reply::OK);
        }
        NodeCommand::CheckJobs => return check_jobs(snapshot, path, parts.at_us),
        NodeCommand::Get | NodeCommand::GetState | NodeCommand::Migrate => {}
    }
    get::get(rules.tree, command, path)
}

/// Has the jobs of a node's tasks, or of all, written as at their first try, and not started. Of a
/// family whose default is complete none are.
fn check_jobs(snapshot: Snapshot, path: &str, at_us: i64) -> Told {
    let id = match path {
        "" => Some(NodeId::ROOT),
        path => snapshot.find(path),
    };
    let Some(id) = id else {
        return Told::Reply(Reply::error(format!(
            "Defs::check_job_creation: failed as node path '{path}' does not exist.\n"
        )));
    };
    Told::Jobs(Box::new(move || {
        (snapshot.begun(id, Instant::seconds(at_us.div_euclid(1_000_000))), id)
    }))
}

/// The most syncs of one group: each keeps what has changed until its answer is made.
const MAX_SYNCS: usize = 16;

fn group(parts: &mut Parts<'_>, rules: &mut Rules<'_>, all: &[Request]) -> Told {
    let mut told = Vec::new();
    let mut handle = None;
    let mut syncs = 0;
    for request in all {
        let one = match &request.body {
            crate::protocol::Body::Child(child, report) => {
                Told::Reply(super::children::report(parts, rules, &request.host, child, report))
            }
            crate::protocol::Body::User(user, one) => {
                // A sync behind a new handle is that handle's.
                let of_handle = match (one, handle) {
                    (
                        Command::Sync { kind, handle: 0, state_change_no, modify_change_no },
                        Some(handle),
                    ) => Command::Sync {
                        kind: *kind,
                        handle,
                        state_change_no: *state_change_no,
                        modify_change_no: *modify_change_no,
                    },
                    _ => one.clone(),
                };
                let told = match of_handle {
                    Command::Log(_) => {
                        Told::Reply(Reply::error("the log is asked by a command of its own"))
                    }
                    Command::Sync { .. } if syncs >= MAX_SYNCS => Told::Reply(Reply::error(
                        format!("a group has at most {MAX_SYNCS} of news and syncs; ask apart"),
                    )),
                    one => command(parts, rules, &user.name, request, &one),
                };
                syncs += usize::from(matches!(one, Command::Sync { .. }));
                told
            }
        };
        if let Told::Reply(Reply::Handle(number)) = &one {
            handle = Some(*number);
        }
        told.push(one);
    }
    Told::Group(told)
}
