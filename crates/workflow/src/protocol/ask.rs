//! Writing requests, byte for byte as ecFlow's client does.

use super::archive::Archive;
use super::frame;
use super::request::{NodeCommand, ServerCommand, SyncKind};
use super::words::{CHANGED, NODE_COMMANDS, SERVER_COMMANDS, SYNC_KINDS};

/// Who asks: every request says it.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The client's host.
    pub host: &'a str,
    /// The user.
    pub user: &'a str,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Ask<'a> {
    /// Something of the server as a whole.
    Server(ServerCommand),
    /// Add the suites of a definition.
    Load {
        /// Its text.
        definition: &'a str,
        /// Its file's name.
        file: &'a str,
    },
    /// Begin a suite.
    Begin(&'a str),
    /// Something of one node, or of all with an empty path.
    Node(NodeCommand, &'a str),
    /// What is new since these numbers, without a handle.
    Sync {
        /// How much.
        kind: SyncKind,
        /// The number of the last change of state that the client has.
        state_change_no: i64,
        /// The number of the last change of structure that it has.
        modify_change_no: i64,
    },
    /// Give a label another value.
    ChangeLabel {
        /// The node.
        path: &'a str,
        /// The label.
        name: &'a str,
        /// The value.
        value: &'a str,
    },
    /// What a node's attribute is.
    Query {
        /// `label`, `meter`, `event` and others.
        kind: &'a str,
        /// The node.
        path: &'a str,
        /// The attribute.
        attribute: &'a str,
    },
    /// A job's report, with the password that any task takes.
    Child {
        /// The task.
        path: &'a str,
        /// What it reports.
        report: Told<'a>,
    },
    /// Several, one after another.
    Group(Vec<Ask<'a>>),
}

/// What a job reports.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// An event is set.
    Event(&'a str),
    /// A meter has a value.
    Meter(&'a str, i64),
}

/// The password that is right for every task: that of tests and of `ECF_DUMMY_TASK`.
const ANY_JOB: &str = "_DJP_";

/// The numbers that stand for no attribute in `add_attr_type_`, `del_attr_type_` and
/// `change_attr_type_`, and for no flag.
pub(super) const NOTHING_ADDED: i64 = 6;
pub(super) const NOTHING_DELETED: i64 = 16;
pub(super) const NOTHING_CHANGED: i64 = 13;
pub(super) const NO_FLAG: i64 = 19;

/// The number of a kind in its table, of which the first has the number `first`.
pub(super) fn number<T: PartialEq>(table: &[(T, &str)], kind: &T, first: i64) -> i64 {
    table.iter().zip(first..).find(|((one, _), _)| one == kind).map_or(first, |(_, at)| at)
}

impl Ask<'_> {
    /// Appends the request in its frame.
    pub fn write(&self, asker: Asker<'_>, out: &mut Vec<u8>) {
        frame::frame(out, |out| {
            let mut archive = Archive::new(out);
            archive.group(*b"{}", |archive| {
                archive.object("21ClientToServerRequest", |archive| {
                    archive.object("cmd_", |archive| self.pointer(asker, archive));
                });
            });
        });
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Server(_) => "CtsCmd",
            Self::Load { .. } => "LoadDefsCmd",
            Self::Begin(_) => "BeginCmd",
            Self::Node(..) => "CtsNodeCmd",
            Self::Sync { .. } => "CSyncCmd",
            Self::ChangeLabel { .. } => "AlterCmd",
            Self::Query { .. } => "QueryCmd",
            Self::Child { report: Told::Event(_), .. } => "EventCmd",
            Self::Child { report: Told::Meter(..), .. } => "MeterCmd",
            Self::Group(_) => "GroupCTSCmd",
        }
    }

    fn pointer(&self, asker: Asker<'_>, archive: &mut Archive<'_>) {
        let client = |archive: &mut Archive<'_>| {
            archive.class("value0", "ClientToServerCmd", |archive| {
                archive.text("cl_host_", asker.host);
            });
        };
        archive.polymorphic(self.kind(), |archive| {
            if let Self::Child { path, report } = self {
                archive.class("value0", "TaskCmd", |archive| {
                    client(archive);
                    archive.text("path_to_submittable_", path);
                    archive.text("jobs_password_", ANY_JOB);
                    archive.text("process_or_remote_id_", "1");
                    archive.integer("try_no_", 1);
                });
                return report.members(archive);
            }
            archive.class("value0", "UserCmd", |archive| {
                client(archive);
                archive.text("user_", asker.user);
            });
            self.members(asker, archive);
        });
    }

    fn members(&self, asker: Asker<'_>, archive: &mut Archive<'_>) {
        match self {
            Self::Server(command) => archive.integer("api_", number(&SERVER_COMMANDS, command, 1)),
            Self::Load { definition, file } => {
                archive.flag("force_", false);
                archive.text("defs_", definition);
                archive.text("defs_filename_", file);
            }
            Self::Begin(suite) => {
                archive.text("suiteName_", suite);
                archive.flag("force_", false);
            }
            Self::Node(command, path) => {
                archive.integer("api_", number(&NODE_COMMANDS, command, 1));
                archive.text("absNodePath_", path);
            }
            Self::Sync { kind, state_change_no, modify_change_no } => {
                archive.integer("api_", number(&SYNC_KINDS, kind, 0));
                archive.integer("client_handle_", 0);
                archive.integer("client_state_change_no_", *state_change_no);
                archive.integer("client_modify_change_no_", *modify_change_no);
            }
            Self::ChangeLabel { path, name, value } => {
                let label = CHANGED.iter().zip(0..).find(|(word, _)| **word == "label");
                archive.texts("paths_", &[path]);
                archive.text("name_", name);
                archive.text("value_", value);
                archive.integer("add_attr_type_", NOTHING_ADDED);
                archive.integer("del_attr_type_", NOTHING_DELETED);
                archive.integer("change_attr_type_", label.map_or(0, |(_, number)| number));
                archive.integer("flag_type_", NO_FLAG);
                archive.flag("flag_", false);
            }
            Self::Query { kind, path, attribute } => {
                archive.text("query_type_", kind);
                archive.text("path_to_attribute_", path);
                archive.text("attribute_", attribute);
                archive.text("path_to_task_", "");
            }
            Self::Child { .. } => {}
            Self::Group(all) => {
                archive.objects("cmdVec_", all, |archive, one| one.pointer(asker, archive));
                archive.flag("cli_", true);
            }
        }
    }
}

impl Told<'_> {
    fn members(&self, archive: &mut Archive<'_>) {
        match self {
            Self::Event(name) => archive.text("name_", name),
            Self::Meter(name, value) => {
                archive.text("name_", name);
                archive.integer("value_", *value);
            }
        }
    }
}
