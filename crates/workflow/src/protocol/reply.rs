//! What the server answers, and the document of each answer.

use std::cell::Cell;

use super::archive::Archive;
use super::frame;
use super::memento::Compound;
use super::source::Source;

/// The answers of `StcCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// It is done.
    Ok = 0,
    /// The server is halted: jobs ask again later.
    Halted = 1,
    /// What a job waits for is not true yet: it asks again.
    Wait = 2,
    /// The client forgets its definition.
    DeleteAll = 3,
    /// An argument is wrong.
    InvalidArgument = 4,
    /// The connection ended.
    EndOfFile = 5,
}

/// Whether there is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// None.
    None = 0,
    /// Some.
    Some = 1,
    /// The client has to take all anew.
    Full = 2,
}

/// A zombie, as clients show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZombieRow {
    /// What the user has decided, by its number.
    pub user_action: i64,
    /// The job's try.
    pub try_no: i64,
    /// Since it was first seen, in seconds.
    pub duration: i64,
    /// How often it has called.
    pub calls: i64,
    /// Its type, by its number.
    pub zombie_type: i64,
    /// Its last report, by its number.
    pub last_child_cmd: i64,
    /// The path of the task that it says it is.
    pub path: String,
    /// Its password.
    pub password: String,
    /// Its process.
    pub process_id: String,
    /// The command by which it was decided.
    pub user_cmd: String,
    /// Its host.
    pub host: String,
    /// The lifetime that its attribute allows, in seconds.
    pub lifetime: i64,
    /// What its attribute says, by its number.
    pub attribute_action: i64,
    /// Whether a user has decided.
    pub user_action_set: bool,
}

/// The members of `SStatsCmd` that are more than counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// 0 halted, 1 shut down, 2 running.
    pub state: i64,
    /// Its host.
    pub host: String,
    /// The port.
    pub port: String,
    /// When it started: 2026-Nov-23 18:31:33.
    pub up_since: String,
    /// The version line.
    pub version: String,
    /// Seconds between two looks at times.
    pub job_interval: i64,
    /// Seconds between two checkpoints.
    pub check_interval: i64,
    /// Seconds beyond which a checkpoint is named.
    pub check_alarm: i64,
    /// 0 never, 1 on time, 2 always.
    pub check_mode: i64,
    /// Suites.
    pub suites: i64,
    /// Requests a second over the last 1, 5, 15, 30 and 60 looks at times.
    pub rates: String,
    /// ECF_HOME.
    pub home: String,
    /// ECF_CHECK.
    pub check_file: String,
    /// ECF_LOG.
    pub log_file: String,
    /// `disabled`, or how connections are encrypted.
    pub encryption: String,
    /// Requests of each kind, in ecFlow's order: value16 to value81.
    pub counters: Vec<i64>,
}

/// The last of the members of `SStatsCmd`.
const LAST_STATISTIC: usize = 81;

/// What has changed since the numbers that the client named.
#[derive(Clone, Debug, PartialEq)]
pub enum Changes {
    /// All of it.
    Full(Source),
    /// All of the suites of a handle.
    Some(Source),
    /// What has changed, by node, up to these numbers; nothing where that is empty.
    Since {
        /// The number of the last change of state.
        state_change_no: i64,
        /// The number of the last change of structure.
        modify_change_no: i64,
        /// The nodes, each once, and a suite once more for its calendar.
        nodes: Vec<Compound>,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// One of those without contents.
    Standard(Standard),
    /// A failure, in the words that the client shows.
    Error(String),
    /// The job is a zombie of this type, and waits.
    Blocked(i64),
    /// A text.
    Text(String),
    /// Lines.
    Texts(Vec<String>),
    /// A whole definition.
    Definition(Source),
    /// The text of one node.
    Node(Source),
    /// The names of suites.
    Suites(Vec<String>),
    /// The path of the log, from which the client draws.
    LogPath(String),
    /// `--stats_server`
    Stats(Box<Stats>),
    /// `--news`
    News(News),
    /// `--sync`
    Changes(Changes),
    /// A handle.
    Handle(i64),
    /// Handles of each user, and suites of each handle.
    Handles(Vec<(String, Vec<i64>)>, Vec<(i64, Vec<String>)>),
    /// All zombies.
    Zombies(Vec<ZombieRow>),
    /// The answers of a group that have contents.
    Group(Vec<Reply>),
}

impl Reply {
    /// Done.
    pub const OK: Self = Self::Standard(Standard::Ok);

    /// The failure that `why` says.
    pub fn error(why: impl Into<String>) -> Self {
        Self::Error(why.into())
    }

    /// Appends the answer in its frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        framed(out, 0, |archive| self.pointer(archive));
    }

    /// The answer in its frame without the text of a tree or node that it has, of this number of
    /// bytes in JSON: what comes before it and behind it.
    #[must_use]
    pub fn around(&self, text_bytes: usize) -> [Vec<u8>; 2] {
        let (mut before, mut at) = (Vec::new(), None);
        framed(&mut before, text_bytes, |archive| {
            archive.leaves_out = true;
            self.pointer(archive);
            at = archive.left_out_at;
        });
        let behind = before.split_off(at.unwrap_or(before.len()));
        [before, behind]
    }

    /// Appends the answer to a group in its frame, each member as soon as it is made, and for as
    /// long as there is room for what is written; returns whether all are there.
    pub fn write_group(
        mut members: impl Iterator<Item = Self>,
        out: &mut Vec<u8>,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> bool {
        let is_whole = Cell::new(true);
        let members = std::iter::from_fn(|| is_whole.get().then(|| members.next()).flatten());
        framed(out, 0, |archive| {
            pointer(archive, "GroupSTCCmd", |archive| {
                archive.objects("cmdVec_", members, |archive, reply| {
                    reply.pointer(archive);
                    is_whole.set(has_room(archive.bytes()));
                });
            });
        });
        is_whole.get()
    }

    /// The bytes of its texts, of those that are made by then.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Error(text) | Self::Text(text) | Self::LogPath(text) => text.len(),
            Self::Texts(texts) | Self::Suites(texts) => {
                texts.iter().map(|text| text.len() + size_of::<String>()).sum()
            }
            Self::Group(replies) => replies.iter().map(Self::text_bytes).sum(),
            _ => 0,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Standard(_) => "StcCmd",
            Self::Error(_) => "ErrorCmd",
            Self::Blocked(_) => "BlockClientZombieCmd",
            Self::Text(_) => "SStringCmd",
            Self::Texts(_) => "SStringVecCmd",
            Self::Definition(_) => "DefsCmd",
            Self::Node(_) => "SNodeCmd",
            Self::Suites(_) => "SSuitesCmd",
            Self::LogPath(_) => "SServerLoadCmd",
            Self::Stats(_) => "SStatsCmd",
            Self::News(_) => "SNewsCmd",
            Self::Changes(_) => "SSyncCmd",
            Self::Handle(_) => "SClientHandleCmd",
            Self::Handles(..) => "SClientHandleSuitesCmd",
            Self::Zombies(_) => "ZombieGetCmd",
            Self::Group(_) => "GroupSTCCmd",
        }
    }

    fn pointer(&self, archive: &mut Archive<'_>) {
        pointer(archive, self.kind(), |archive| self.members(archive));
    }

    fn members(&self, archive: &mut Archive<'_>) {
        match self {
            Self::Standard(standard) => archive.integer("api_", *standard as i64),
            // As ecFlow, which means the end of the text.
            Self::Error(why) => match why.rsplit_once('\n') {
                None => archive.text("error_msg_", why),
                Some((before, last)) => archive.text("error_msg_", &format!("{before}{last}")),
            },
            Self::Blocked(kind) => archive.integer("zombie_type_", *kind),
            Self::Text(text) => archive.text("str_", text),
            Self::Texts(lines) => archive.texts("vec_", lines),
            Self::Definition(text) => archive.source("value1", Some(text)),
            Self::Node(text) => archive.source("the_node_str_", Some(text)),
            Self::Suites(names) => archive.texts("suites_", names),
            Self::LogPath(path) => archive.text("log_file_path_", path),
            Self::Stats(stats) => archive.class("stats_", "Stats", |archive| stats.write(archive)),
            Self::News(news) => archive.integer("news_", *news as i64),
            Self::Changes(changes) => changes.write(archive),
            Self::Handle(handle) => archive.integer("handle_", *handle),
            Self::Handles(users, handles) => {
                archive.objects("users_", users, |archive, (user, handles)| {
                    archive.text("first", user);
                    archive.integers("second", handles);
                });
                archive.objects("client_handles_", handles, |archive, (handle, suites)| {
                    archive.integer("first", *handle);
                    archive.texts("second", suites);
                });
            }
            Self::Zombies(zombies) => {
                archive.objects("zombies_", zombies, |archive, zombie| zombie.write(archive));
            }
            Self::Group(replies) => {
                archive.objects("cmdVec_", replies, |archive, reply| reply.pointer(archive));
            }
        }
    }
}

/// Appends the frame of an answer, into which this number of bytes is put later.
fn framed(out: &mut Vec<u8>, more: usize, pointer: impl FnOnce(&mut Archive<'_>)) {
    frame::frame_with(out, more, |out| {
        let mut archive = Archive::new(out);
        archive.group(*b"{}", |archive| {
            archive.object("22ServerToClientResponse", |archive| {
                archive.object("stc_cmd_", pointer);
            });
        });
    });
}

/// What points to an answer of a kind.
fn pointer(archive: &mut Archive<'_>, kind: &'static str, members: impl FnOnce(&mut Archive<'_>)) {
    archive.polymorphic(kind, |archive| {
        archive.class("value0", "ServerToClientCmd", |_| {});
        members(archive);
    });
}

impl Stats {
    fn write(&self, archive: &mut Archive<'_>) {
        archive.integer("value0", self.state);
        archive.text("value1", "");
        archive.text("value2", &self.host);
        archive.text("value3", &self.port);
        archive.text("value4", &self.up_since);
        archive.text("value5", &self.version);
        archive.integer("value6", self.job_interval);
        archive.integer("value7", self.check_interval);
        archive.integer("value8", self.check_alarm);
        archive.integer("value9", self.check_mode);
        archive.integer("value10", self.suites);
        archive.text("value11", &self.rates);
        archive.text("value12", &self.home);
        archive.text("value13", &self.check_file);
        archive.text("value14", &self.log_file);
        archive.text("value15", &self.encryption);
        for place in 16..=LAST_STATISTIC {
            let count = self.counters.get(place - 16).copied().unwrap_or(0);
            archive.integer(&format!("value{place}"), count);
        }
    }
}

impl Changes {
    fn write(&self, archive: &mut Archive<'_>) {
        let (state_no, modify_no, nodes) = match self {
            Self::Since { state_change_no, modify_change_no, nodes } => {
                (*state_change_no, *modify_change_no, nodes.as_slice())
            }
            _ => (0, 0, &[][..]),
        };
        archive.flag("full_defs_", matches!(self, Self::Full(_)));
        archive.class("incremental_changes_", "DefsDelta", |archive| {
            archive.integer("server_state_change_no_", state_no);
            archive.integer("server_modify_change_no_", modify_no);
            archive.objects("compound_mementos_", nodes, |archive, node| node.write(archive));
        });
        let (some, full) = match self {
            Self::Full(text) => (None, Some(text)),
            Self::Some(text) => (Some(text), None),
            Self::Since { .. } => (None, None),
        };
        archive.source("server_defs_", some);
        archive.source("value1", full);
    }
}

impl ZombieRow {
    fn write(&self, archive: &mut Archive<'_>) {
        archive.version("Zombie");
        archive.integer("user_action_", self.user_action);
        archive.integer("try_no_", self.try_no);
        archive.integer("duration_", self.duration);
        archive.integer("calls_", self.calls);
        archive.integer("zombie_type_", self.zombie_type);
        archive.integer("last_child_cmd_", self.last_child_cmd);
        archive.text("path_to_task_", &self.path);
        archive.text("jobs_password_", &self.password);
        archive.text("process_or_remote_id_", &self.process_id);
        archive.text("user_cmd_", &self.user_cmd);
        archive.text("host_", &self.host);
        archive.class("attr_", "ZombieAttr", |archive| {
            archive.integers("child_cmds_", &[]);
            archive.integer("zombie_type_", self.zombie_type);
            archive.integer("action_", self.attribute_action);
            archive.integer("zombie_lifetime_", self.lifetime);
        });
        archive.flag("user_action_set_", self.user_action_set);
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, Reply};
    use crate::protocol::Source;

    #[test]
    fn an_answer_is_the_same_whether_its_text_is_written_into_it_or_sent_beside_it() {
        let source = Source::new(|take| {
            take("#5.9.2\n");
            take("label a \"b\\n\"\n");
        });
        let mut text = Vec::new();
        source.write(&mut text);
        for reply in [
            Reply::Definition(source.clone()),
            Reply::Node(source.clone()),
            Reply::Changes(Changes::Full(source.clone())),
            Reply::Changes(Changes::Some(source)),
        ] {
            let mut whole = Vec::new();
            reply.write(&mut whole);
            let [before, behind] = reply.around(text.len());
            assert_eq!([&before[..], &text, &behind].concat(), whole);
        }
    }

    #[test]
    fn a_group_is_written_as_one_answer_or_ends_where_there_is_no_room() {
        let members = || ["a", "b", "c"].map(|text| Reply::Text(text.to_owned())).to_vec();
        let (mut whole, mut out) = (Vec::new(), Vec::new());
        Reply::Group(members()).write(&mut whole);
        assert!(Reply::write_group(members().into_iter(), &mut out, |_| true));
        assert_eq!(out, whole);
        let mut made = 0;
        let counted = members().into_iter().inspect(|_| made += 1);
        out.clear();
        let mut rooms = [true, false].into_iter();
        assert!(!Reply::write_group(counted, &mut out, |_| rooms.next().expect("asked twice")));
        assert_eq!(made, 2);
    }
}
