//! Reading a request's document. Members count by their names, wherever they stand among those of
//! the base classes; unknown ones are passed over.

use std::borrow::Cow;

use super::json::{BadJson, Reader};
use super::request::{
    Alteration, Body, Child, Command, HandleCommand, LogCommand, Report, Request, User, one_word,
};
use super::words::{
    ADDED, CHANGED, DELETED, EDITS, FILE_KINDS, FLAGS, NODE_COMMANDS, ORDERS, PATHS_COMMANDS,
    REQUEUES, SERVER_COMMANDS, SYNC_KINDS, ZOMBIE_ACTIONS,
};

/// The most members of one request, and requests of one group.
const MAX_MEMBERS: usize = 64;
const MAX_GROUP: usize = 10_000;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// It is no JSON.
    #[error("the request is not understood: {0}")]
    Json(#[from] BadJson),
    /// It is JSON, and no request.
    #[error("the request is not understood: {0}")]
    Content(String),
}

type Result<T> = std::result::Result<T, BadRequest>;

fn content<T>(what: impl Into<String>) -> Result<T> {
    Err(BadRequest::Content(what.into()))
}

/// Reads a request.
///
/// # Errors
/// When it is none; the error says where.
pub fn read(document: &[u8]) -> Result<Request> {
    let mut reader = Reader::new(document)?;
    let mut found = None;
    reader.object(|reader, _| {
        // The outermost name is mangled from the name of a C++ class.
        reader.object(|reader, name| match name {
            "cmd_" => {
                found = Some(pointer(reader, &mut Vec::new())?);
                Ok(())
            }
            _ => reader.skip(),
        })
    })?;
    match found {
        Some(request) => request.request(),
        None => content("there is no \"cmd_\""),
    }
}

/// A request as it is read: its type's name, and its members.
struct Raw<'a> {
    kind: String,
    members: Vec<(Cow<'a, str>, Member<'a>)>,
}

enum Member<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    Flag(bool),
    Texts(Vec<String>),
    /// Pairs, and variables.
    Pairs(Vec<(String, String)>),
    Requests(Vec<Raw<'a>>),
}

/// Reads a pointer to an object of some type. `names` are those of types that came before: later
/// ones have their number only.
fn pointer<'a>(
    reader: &mut Reader<'a>,
    names: &mut Vec<String>,
) -> std::result::Result<Raw<'a>, BadJson> {
    const FIRST: i64 = 0x8000_0000;
    let (mut kind, mut id) = (None, 0);
    let mut members = Vec::new();
    reader.object(|reader, name| match name {
        "polymorphic_id" => {
            id = reader.integer()?;
            Ok(())
        }
        "polymorphic_name" => {
            kind = Some(reader.string()?.into_owned());
            Ok(())
        }
        "ptr_wrapper" => {
            // The name comes before what it is the name of.
            match &kind {
                Some(name) if names.len() < MAX_MEMBERS => names.push(name.clone()),
                Some(_) => return reader.bad("too many types in one request"),
                None => {
                    let place = usize::try_from(id & !FIRST).unwrap_or(0).checked_sub(1);
                    kind = place.and_then(|place| names.get(place)).cloned();
                }
            }
            reader.object(|reader, name| match name {
                "data" => data(reader, names, &mut members),
                _ => reader.skip(),
            })
        }
        _ => reader.skip(),
    })?;
    match kind {
        Some(kind) => Ok(Raw { kind, members }),
        None => reader.bad("an object without the name of its type"),
    }
}

/// Reads the members of an object and of its base classes.
fn data<'a>(
    reader: &mut Reader<'a>,
    names: &mut Vec<String>,
    members: &mut Vec<(Cow<'a, str>, Member<'a>)>,
) -> std::result::Result<(), BadJson> {
    reader.object(|reader, name| {
        let member = match (name, reader.peek()?) {
            ("cereal_class_version", _) => return reader.skip(),
            ("value0", b'{') => return data(reader, names, members),
            (_, b'"') => Member::Text(reader.string()?),
            (_, b't' | b'f') => Member::Flag(reader.boolean()?),
            (_, b'-' | b'0'..=b'9') => Member::Number(reader.integer()?),
            ("cmdVec_", b'[') => {
                let mut requests = Vec::new();
                reader.list(|reader| {
                    if requests.len() >= MAX_GROUP {
                        return reader.bad(format!("more than {MAX_GROUP} requests in a group"));
                    }
                    requests.push(pointer(reader, names)?);
                    Ok(())
                })?;
                Member::Requests(requests)
            }
            (_, b'[') => list(reader)?,
            _ => return reader.skip(),
        };
        if members.len() >= MAX_MEMBERS {
            return reader.bad("too many members");
        }
        members.push((Cow::Owned(name.to_owned()), member));
        Ok(())
    })
}

/// Reads texts, or pairs: `first` and `second`, or `n_` and `v_` of a variable.
fn list<'a>(reader: &mut Reader<'a>) -> std::result::Result<Member<'a>, BadJson> {
    let (mut texts, mut pairs) = (Vec::new(), Vec::new());
    reader.list(|reader| {
        if reader.peek()? != b'{' {
            texts.push(reader.string()?.into_owned());
            return Ok(());
        }
        let mut pair = (String::new(), String::new());
        reader.object(|reader, name| {
            match name {
                "first" | "n_" => pair.0 = reader.string()?.into_owned(),
                "second" | "v_" => pair.1 = reader.string()?.into_owned(),
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        pairs.push(pair);
        Ok(())
    })?;
    Ok(if pairs.is_empty() { Member::Texts(texts) } else { Member::Pairs(pairs) })
}

impl<'a> Raw<'a> {
    fn take(&mut self, name: &str) -> Option<Member<'a>> {
        let place = self.members.iter().position(|(found, _)| found == name)?;
        Some(self.members.swap_remove(place).1)
    }

    fn missing<T>(&self, name: &str) -> Result<T> {
        content(format!("{} without {name:?}, or it is of another type", self.kind))
    }

    fn text(&mut self, name: &str) -> Result<String> {
        match self.take(name) {
            Some(Member::Text(text)) => Ok(text.into_owned()),
            _ => self.missing(name),
        }
    }

    fn number(&mut self, name: &str) -> Result<i64> {
        match self.take(name) {
            Some(Member::Number(number)) => Ok(number),
            _ => self.missing(name),
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            Some(Member::Flag(flag)) => Ok(flag),
            _ => self.missing(name),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        match self.take(name) {
            Some(Member::Texts(texts)) => Ok(texts),
            _ => self.missing(name),
        }
    }

    fn pairs(&mut self, name: &str) -> Vec<(String, String)> {
        match self.take(name) {
            Some(Member::Pairs(pairs)) => pairs,
            _ => Vec::new(),
        }
    }

    /// The kind that a number stands for, in a table that begins with `first`.
    fn one_of<T: Copy>(&mut self, name: &str, table: &[(T, &str)], first: i64) -> Result<T> {
        let number = self.number(name)?;
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| table.get(place)) {
            Some((kind, _)) => Ok(*kind),
            None => content(format!("{} with {name:?} {number}, which is none", self.kind)),
        }
    }

    fn request(mut self) -> Result<Request> {
        let host = self.text("cl_host_").unwrap_or_default();
        let body = match self.report()? {
            Some(report) => {
                let child = Child {
                    path: self.text("path_to_submittable_")?,
                    password: one_word(self.text("jobs_password_")?),
                    process_id: one_word(self.text("process_or_remote_id_")?),
                    try_no: self.number("try_no_")?,
                };
                Body::Child(child, report)
            }
            None => {
                let user = User {
                    name: self.text("user_")?,
                    password: self.text("pswd_").unwrap_or_default(),
                    is_custom: self.flag("cu_").unwrap_or_default(),
                };
                Body::User(user, self.command()?)
            }
        };
        Ok(Request { host, body })
    }

    fn report(&mut self) -> Result<Option<Report>> {
        Ok(Some(match self.kind.as_str() {
            "InitCmd" => Report::Init(self.pairs("var_to_add_")),
            "CompleteCmd" => Report::Complete(self.texts("var_to_del_").unwrap_or_default()),
            "AbortCmd" => Report::Abort(self.text("reason_")?),
            "EventCmd" => Report::Event {
                name: self.text("name_")?,
                is_set: self.flag("value_").unwrap_or(true),
            },
            "MeterCmd" => {
                Report::Meter { name: self.text("name_")?, value: self.number("value_")? }
            }
            "LabelCmd" => Report::Label { name: self.text("name_")?, text: self.text("label_")? },
            "CtsWaitCmd" => Report::Wait(self.text("expression_")?),
            "QueueCmd" => Report::Queue {
                name: self.text("name_")?,
                action: self.text("action_")?,
                step: self.text("step_")?,
                path: self.text("path_to_node_with_queue_")?,
            },
            _ => return Ok(None),
        }))
    }

    fn command(&mut self) -> Result<Command> {
        Ok(match self.kind.as_str() {
            "CtsCmd" => Command::Server(self.one_of("api_", &SERVER_COMMANDS, 1)?),
            "ServerVersionCmd" => Command::Version,
            "CheckPtCmd" => Command::CheckPoint {
                mode: self.number("mode_")?,
                interval: self.number("check_pt_interval_")?,
                alarm: self.number("check_pt_save_time_alarm_")?,
            },
            "CSyncCmd" => Command::Sync {
                kind: self.one_of("api_", &SYNC_KINDS, 0)?,
                handle: self.number("client_handle_")?,
                state_change_no: self.number("client_state_change_no_")?,
                modify_change_no: self.number("client_modify_change_no_")?,
            },
            "ClientHandleCmd" => Command::Handle(self.handle()?),
            "CtsNodeCmd" => {
                Command::Node(self.one_of("api_", &NODE_COMMANDS, 1)?, self.text("absNodePath_")?)
            }
            "DeleteCmd" => {
                Command::Delete { paths: self.texts("paths_")?, force: self.flag("force_")? }
            }
            "PathsCmd" => Command::Paths {
                command: self.one_of("api_", &PATHS_COMMANDS, 1)?,
                paths: self.texts("paths_")?,
                force: self.flag("force_")?,
            },
            "LogCmd" => Command::Log(self.log()?),
            "LogMessageCmd" => Command::Message(self.text("msg_")?),
            "BeginCmd" => {
                Command::Begin { suite: self.text("suiteName_")?, force: self.flag("force_")? }
            }
            "ZombieCmd" => Command::Zombie {
                action: self.one_of("user_action_", &ZOMBIE_ACTIONS, 0)?,
                process_id: one_word(self.text("process_id_")?),
                password: one_word(self.text("password_")?),
                paths: self.texts("paths_")?,
            },
            "RequeueNodeCmd" => Command::Requeue {
                paths: self.texts("paths_")?,
                option: self.one_of("option_", &REQUEUES, 0)?,
            },
            "OrderNodeCmd" => Command::Order {
                path: self.text("absNodepath_")?,
                order: self.one_of("option_", &ORDERS, 0)?,
            },
            "RunNodeCmd" => {
                Command::Run { paths: self.texts("paths_")?, force: self.flag("force_")? }
            }
            "ShowCmd" => Command::Show,
            "AlterCmd" => self.alter()?,
            _ => return self.larger_command(),
        })
    }

    fn larger_command(&mut self) -> Result<Command> {
        Ok(match self.kind.as_str() {
            "LoadDefsCmd" => Command::Load {
                force: self.flag("force_")?,
                definition: self.text("defs_")?,
                file: self.text("defs_filename_").unwrap_or_default(),
            },
            "ReplaceNodeCmd" => Command::Replace {
                creates: self.flag("createNodesAsNeeded_")?,
                force: self.flag("force_")?,
                path: self.text("pathToNode_")?,
                file: self.text("path_to_defs_")?,
                definition: self.text("clientDefs_")?,
            },
            "ForceCmd" => Command::Force {
                paths: self.texts("paths_")?,
                word: self.text("stateOrEvent_")?,
                recursive: self.flag("recursive_")?,
                repeats_to_last: self.flag("setRepeatToLastValue_")?,
            },
            "FreeDepCmd" => Command::FreeDependencies {
                paths: self.texts("paths_")?,
                trigger: self.flag("trigger_")?,
                all: self.flag("all_")?,
                date: self.flag("date_")?,
                time: self.flag("time_")?,
            },
            "CFileCmd" => Command::File {
                kind: self.one_of("file_", &FILE_KINDS, 0)?,
                path: self.text("pathToNode_")?,
                max_lines: self.number("max_lines_")?,
            },
            "EditScriptCmd" => Command::EditScript {
                edit: self.one_of("edit_type_", &EDITS, 0)?,
                path: self.text("path_to_node_")?,
                lines: self.texts("user_file_contents_")?,
                variables: self.pairs("user_variables_"),
                alias: self.flag("alias_")?,
                run: self.flag("run_")?,
            },
            "PlugCmd" => {
                Command::Plug { source: self.text("source_")?, destination: self.text("dest_")? }
            }
            "MoveCmd" => Command::Move {
                node: self.text("src_node_")?,
                host: self.text("src_host_")?,
                port: self.text("src_port_")?,
                path: self.text("src_path_")?,
                destination: self.text("dest_")?,
            },
            "QueryCmd" => Command::Query {
                kind: self.text("query_type_")?,
                path: self.text("path_to_attribute_")?,
                attribute: self.text("attribute_")?,
                task: self.text("path_to_task_")?,
            },
            "GroupCTSCmd" => Command::Group(self.group()?),
            other => return content(format!("there is no request {other:?}")),
        })
    }

    fn group(&mut self) -> Result<Vec<Request>> {
        let requests = match self.take("cmdVec_") {
            Some(Member::Requests(requests)) => requests,
            _ => return self.missing("cmdVec_"),
        };
        let is_group = |raw: &Raw<'_>| raw.kind == "GroupCTSCmd";
        if requests.iter().any(is_group) {
            return content("a group within a group");
        }
        requests.into_iter().map(Raw::request).collect()
    }

    fn handle(&mut self) -> Result<HandleCommand> {
        let api = self.number("api_")?;
        let handle = self.number("client_handle_")?;
        let (suites, takes_new) = (self.texts("suites_")?, self.flag("auto_add_new_suites_")?);
        Ok(match api {
            0 => HandleCommand::Register { suites, takes_new },
            1 => HandleCommand::Drop(handle),
            2 => HandleCommand::DropUser(self.text("drop_user_")?),
            3 => HandleCommand::Add(handle, suites),
            4 => HandleCommand::Remove(handle, suites),
            5 => HandleCommand::AutoAdd(handle, takes_new),
            6 => HandleCommand::Suites,
            _ => return content(format!("ClientHandleCmd with \"api_\" {api}, which is none")),
        })
    }

    fn log(&mut self) -> Result<LogCommand> {
        Ok(match self.number("api_")? {
            0 => LogCommand::Get(self.number("get_last_n_lines_")?),
            1 => LogCommand::Clear,
            2 => LogCommand::Flush,
            3 => LogCommand::New(self.text("new_path_")?),
            4 => LogCommand::Path,
            api => return content(format!("LogCmd with \"api_\" {api}, which is none")),
        })
    }

    fn alter(&mut self) -> Result<Command> {
        let word = |number: i64, words: &[&'static str]| {
            let place = usize::try_from(number).ok();
            place.and_then(|place| words.get(place)).copied().filter(|word| !word.is_empty())
        };
        let added = word(self.number("add_attr_type_")?, &ADDED);
        let deleted = word(self.number("del_attr_type_")?, &DELETED);
        let changed = word(self.number("change_attr_type_")?, &CHANGED);
        let (bit, is_set) = (self.number("flag_type_")?, self.flag("flag_")?);
        let flag =
            u8::try_from(bit).ok().filter(|bit| usize::from(*bit) < FLAGS.len() && *bit != 19);
        let alteration = match (added, deleted, changed, flag) {
            (Some(word), ..) => Alteration::Add(word),
            (_, Some(word), ..) => Alteration::Delete(word),
            (_, _, Some(word), _) => Alteration::Change(word),
            (.., Some(bit)) => Alteration::Flag(bit, is_set),
            _ => Alteration::Sort,
        };
        Ok(Command::Alter {
            paths: self.texts("paths_")?,
            alteration,
            name: self.text("name_")?,
            value: self.text("value_")?,
        })
    }
}
