//! Writing any request as ecFlow's client does: what the server's own faces ask is kept in the
//! journal in the same words as what clients ask.

use super::archive::Archive;
use super::request::{Alteration, Body, Command, HandleCommand, LogCommand, Report, Request, User};
use super::words::{
    ADDED, CHANGED, DELETED, EDITS, FILE_KINDS, NODE_COMMANDS, ORDERS, PATHS_COMMANDS, REQUEUES,
    SERVER_COMMANDS, SYNC_KINDS, ZOMBIE_ACTIONS,
};

/// The numbers that stand for no attribute in `add_attr_type_`, `del_attr_type_` and
/// `change_attr_type_`, and for no flag.
const NOTHING_ADDED: i64 = 6;
const NOTHING_DELETED: i64 = 16;
const NOTHING_CHANGED: i64 = 13;
const NO_FLAG: i64 = 19;

/// The lines of the log that the client asks for unless told otherwise.
const LINES: i64 = 100;

/// The number of a kind in its table, of which the first has the number `first`.
fn number<T: PartialEq>(table: &[(T, &str)], kind: &T, first: i64) -> i64 {
    table.iter().zip(first..).find(|((one, _), _)| one == kind).map_or(first, |(_, at)| at)
}

/// The document of a request, without a frame.
#[must_use]
pub fn write(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = Archive::new(&mut out);
    archive.group(*b"{}", |archive| {
        archive.object("21ClientToServerRequest", |archive| {
            archive.object("cmd_", |archive| pointer(archive, request));
        });
    });
    out
}

const fn kind(body: &Body) -> &'static str {
    match body {
        Body::Child(_, report) => match report {
            Report::Init(_) => "InitCmd",
            Report::Complete(_) => "CompleteCmd",
            Report::Abort(_) => "AbortCmd",
            Report::Event { .. } => "EventCmd",
            Report::Meter { .. } => "MeterCmd",
            Report::Label { .. } => "LabelCmd",
            Report::Wait(_) => "CtsWaitCmd",
            Report::Queue { .. } => "QueueCmd",
        },
        Body::User(_, command) => match command {
            Command::Server(_) => "CtsCmd",
            Command::Version => "ServerVersionCmd",
            Command::CheckPoint { .. } => "CheckPtCmd",
            Command::Sync { .. } => "CSyncCmd",
            Command::Handle(_) => "ClientHandleCmd",
            Command::Node(..) => "CtsNodeCmd",
            Command::Delete { .. } => "DeleteCmd",
            Command::Paths { .. } => "PathsCmd",
            Command::Log(_) => "LogCmd",
            Command::Message(_) => "LogMessageCmd",
            Command::Begin { .. } => "BeginCmd",
            Command::Zombie { .. } => "ZombieCmd",
            Command::Requeue { .. } => "RequeueNodeCmd",
            Command::Order { .. } => "OrderNodeCmd",
            Command::Run { .. } => "RunNodeCmd",
            Command::Show => "ShowCmd",
            Command::Load { .. } => "LoadDefsCmd",
            Command::Replace { .. } => "ReplaceNodeCmd",
            Command::Force { .. } => "ForceCmd",
            Command::FreeDependencies { .. } => "FreeDepCmd",
            Command::Alter { .. } => "AlterCmd",
            Command::File { .. } => "CFileCmd",
            Command::EditScript { .. } => "EditScriptCmd",
            Command::Plug { .. } => "PlugCmd",
            Command::Move { .. } => "MoveCmd",
            Command::Query { .. } => "QueryCmd",
            Command::Group(_) => "GroupCTSCmd",
        },
    }
}

fn pointer(archive: &mut Archive<'_>, request: &Request) {
    let client = |archive: &mut Archive<'_>| {
        archive.class("value0", "ClientToServerCmd", |archive| {
            archive.text("cl_host_", &request.host);
        });
    };
    archive.polymorphic(kind(&request.body), |archive| match &request.body {
        Body::Child(child, report) => {
            archive.class("value0", "TaskCmd", |archive| {
                client(archive);
                archive.text("path_to_submittable_", &child.path);
                archive.text("jobs_password_", &child.password);
                archive.text("process_or_remote_id_", &child.process_id);
                archive.integer("try_no_", child.try_no);
            });
            reported(archive, report);
        }
        Body::User(user, command) => {
            archive.class("value0", "UserCmd", |archive| {
                client(archive);
                named(archive, user);
            });
            if !short(archive, command) {
                long(archive, command);
            }
        }
    });
}

fn named(archive: &mut Archive<'_>, user: &User) {
    archive.text("user_", &user.name);
    if !user.password.is_empty() {
        archive.text("pswd_", &user.password);
    }
    if user.is_custom {
        archive.flag("cu_", true);
    }
}

fn reported(archive: &mut Archive<'_>, report: &Report) {
    match report {
        Report::Init(variables) if variables.is_empty() => {}
        Report::Init(variables) => pairs(archive, "var_to_add_", variables, ["n_", "v_"]),
        Report::Complete(names) if names.is_empty() => {}
        Report::Complete(names) => archive.texts("var_to_del_", names),
        Report::Abort(why) => archive.text("reason_", why),
        Report::Event { name, is_set } => {
            archive.text("name_", name);
            if !is_set {
                archive.flag("value_", false);
            }
        }
        Report::Meter { name, value } => {
            archive.text("name_", name);
            archive.integer("value_", *value);
        }
        Report::Label { name, text } => {
            archive.text("name_", name);
            archive.text("label_", text);
        }
        Report::Wait(expression) => archive.text("expression_", expression),
        Report::Queue { name, action, step, path } => {
            archive.text("name_", name);
            archive.text("action_", action);
            archive.text("step_", step);
            archive.text("path_to_node_with_queue_", path);
        }
    }
}

fn pairs(archive: &mut Archive<'_>, name: &str, all: &[(String, String)], names: [&str; 2]) {
    archive.objects(name, all, |archive, (first, second)| {
        archive.text(names[0], first);
        archive.text(names[1], second);
    });
}

/// Writes the members of a command that has few; returns whether it is one.
fn short(archive: &mut Archive<'_>, command: &Command) -> bool {
    match command {
        Command::Server(command) => archive.integer("api_", number(&SERVER_COMMANDS, command, 1)),
        Command::Version | Command::Show => {}
        Command::CheckPoint { mode, interval, alarm } => {
            archive.integer("mode_", *mode);
            archive.integer("check_pt_interval_", *interval);
            archive.integer("check_pt_save_time_alarm_", *alarm);
        }
        Command::Sync { kind, handle, state_change_no, modify_change_no } => {
            archive.integer("api_", number(&SYNC_KINDS, kind, 0));
            archive.integer("client_handle_", *handle);
            archive.integer("client_state_change_no_", *state_change_no);
            archive.integer("client_modify_change_no_", *modify_change_no);
        }
        Command::Handle(command) => handle(archive, command),
        Command::Node(command, path) => {
            archive.integer("api_", number(&NODE_COMMANDS, command, 1));
            archive.text("absNodePath_", path);
        }
        Command::Delete { paths, force } | Command::Run { paths, force } => {
            archive.texts("paths_", paths);
            archive.flag("force_", *force);
        }
        Command::Paths { command, paths, force } => {
            archive.integer("api_", number(&PATHS_COMMANDS, command, 1));
            archive.texts("paths_", paths);
            archive.flag("force_", *force);
        }
        Command::Log(command) => log(archive, command),
        Command::Message(text) => archive.text("msg_", text),
        Command::Begin { suite, force } => {
            archive.text("suiteName_", suite);
            archive.flag("force_", *force);
        }
        Command::Requeue { paths, option } => {
            archive.texts("paths_", paths);
            archive.integer("option_", number(&REQUEUES, option, 0));
        }
        Command::Order { path, order } => {
            archive.text("absNodepath_", path);
            archive.integer("option_", number(&ORDERS, order, 0));
        }
        Command::Plug { source, destination } => {
            archive.text("source_", source);
            archive.text("dest_", destination);
        }
        _ => return false,
    }
    true
}

fn long(archive: &mut Archive<'_>, command: &Command) {
    match command {
        Command::Zombie { action, process_id, password, paths } => {
            archive.integer("user_action_", number(&ZOMBIE_ACTIONS, action, 0));
            archive.text("process_id_", process_id);
            archive.text("password_", password);
            archive.texts("paths_", paths);
        }
        Command::Load { force, definition, file } => {
            archive.flag("force_", *force);
            archive.text("defs_", definition);
            archive.text("defs_filename_", file);
        }
        Command::Replace { creates, force, path, file, definition } => {
            archive.flag("createNodesAsNeeded_", *creates);
            archive.flag("force_", *force);
            archive.text("pathToNode_", path);
            archive.text("path_to_defs_", file);
            archive.text("clientDefs_", definition);
        }
        Command::Force { paths, word, recursive, repeats_to_last } => {
            archive.texts("paths_", paths);
            archive.text("stateOrEvent_", word);
            archive.flag("recursive_", *recursive);
            archive.flag("setRepeatToLastValue_", *repeats_to_last);
        }
        Command::FreeDependencies { paths, trigger, all, date, time } => {
            archive.texts("paths_", paths);
            let flags = [("trigger_", trigger), ("all_", all), ("date_", date), ("time_", time)];
            flags.into_iter().for_each(|(name, flag)| archive.flag(name, *flag));
        }
        Command::Alter { paths, alteration, name, value } => {
            archive.texts("paths_", paths);
            archive.text("name_", name);
            archive.text("value_", value);
            altered(archive, *alteration);
        }
        Command::File { kind, path, max_lines } => {
            archive.integer("file_", number(&FILE_KINDS, kind, 0));
            archive.text("pathToNode_", path);
            archive.integer("max_lines_", *max_lines);
        }
        Command::EditScript { edit, path, lines, variables, alias, run } => {
            archive.integer("edit_type_", number(&EDITS, edit, 0));
            archive.text("path_to_node_", path);
            archive.texts("user_file_contents_", lines);
            pairs(archive, "user_variables_", variables, ["first", "second"]);
            archive.flag("alias_", *alias);
            archive.flag("run_", *run);
        }
        Command::Move { node, host, port, path, destination } => {
            let texts = [("src_node_", node), ("src_host_", host), ("src_port_", port)];
            texts.into_iter().for_each(|(name, text)| archive.text(name, text));
            archive.text("src_path_", path);
            archive.text("dest_", destination);
        }
        Command::Query { kind, path, attribute, task } => {
            archive.text("query_type_", kind);
            archive.text("path_to_attribute_", path);
            archive.text("attribute_", attribute);
            archive.text("path_to_task_", task);
        }
        Command::Group(all) => {
            archive.objects("cmdVec_", all, pointer);
            archive.flag("cli_", true);
        }
        _ => {}
    }
}

fn handle(archive: &mut Archive<'_>, command: &HandleCommand) {
    let none: &[String] = &[];
    let (api, handle, user, suites, takes_new) = match command {
        HandleCommand::Register { suites, takes_new } => (0, 0, "", suites.as_slice(), *takes_new),
        HandleCommand::Drop(handle) => (1, *handle, "", none, false),
        HandleCommand::DropUser(user) => (2, 0, user.as_str(), none, false),
        HandleCommand::Add(handle, suites) => (3, *handle, "", suites.as_slice(), false),
        HandleCommand::Remove(handle, suites) => (4, *handle, "", suites.as_slice(), false),
        HandleCommand::AutoAdd(handle, takes_new) => (5, *handle, "", none, *takes_new),
        HandleCommand::Suites => (6, 0, "", none, false),
    };
    archive.integer("api_", api);
    archive.integer("client_handle_", handle);
    archive.text("drop_user_", user);
    archive.texts("suites_", suites);
    archive.flag("auto_add_new_suites_", takes_new);
}

fn log(archive: &mut Archive<'_>, command: &LogCommand) {
    let (api, lines, path) = match command {
        LogCommand::Get(lines) => (0, *lines, ""),
        LogCommand::Clear => (1, LINES, ""),
        LogCommand::Flush => (2, LINES, ""),
        LogCommand::New(path) => (3, LINES, path.as_str()),
        LogCommand::Path => (4, LINES, ""),
    };
    archive.integer("api_", api);
    archive.integer("get_last_n_lines_", lines);
    archive.text("new_path_", path);
}

fn altered(archive: &mut Archive<'_>, alteration: Alteration) {
    let place = |word: &str, words: &[&str], none: i64| {
        words.iter().zip(0..).find(|(one, _)| **one == word).map_or(none, |(_, place)| place)
    };
    let (mut added, mut deleted, mut changed, mut flag) =
        (NOTHING_ADDED, NOTHING_DELETED, NOTHING_CHANGED, (NO_FLAG, false));
    match alteration {
        Alteration::Add(word) => added = place(word, &ADDED, NOTHING_ADDED),
        Alteration::Delete(word) => deleted = place(word, &DELETED, NOTHING_DELETED),
        Alteration::Change(word) => changed = place(word, &CHANGED, NOTHING_CHANGED),
        Alteration::Flag(bit, is_set) => flag = (bit.into(), is_set),
        Alteration::Sort => {}
    }
    archive.integer("add_attr_type_", added);
    archive.integer("del_attr_type_", deleted);
    archive.integer("change_attr_type_", changed);
    archive.integer("flag_type_", flag.0);
    archive.flag("flag_", flag.1);
}
