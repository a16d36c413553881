//! The numbers in requests, and the words by which users know what they stand for.

use super::request::{
    Edit, FileKind, NodeCommand, Order, PathsCommand, Requeue, ServerCommand, SyncKind,
    ZombieAction,
};

/// All of them with the option that asks for each, in the order of their numbers, from 1.
#[rustfmt::skip]
pub(super) const SERVER_COMMANDS: [(ServerCommand, &str); 18] = [
    (ServerCommand::Restore, "restore_from_checkpt"),
    (ServerCommand::Restart, "restart"),
    (ServerCommand::Shutdown, "shutdown=yes"),
    (ServerCommand::Halt, "halt=yes"),
    (ServerCommand::Terminate, "terminate=yes"),
    (ServerCommand::ReloadWhiteList, "reloadwsfile"),
    (ServerCommand::EvaluateAll, "force-dep-eval"),
    (ServerCommand::Ping, "ping"),
    (ServerCommand::Zombies, "zombie_get"),
    (ServerCommand::StatsText, "stats"),
    (ServerCommand::Suites, "suites"),
    (ServerCommand::DebugOn, "debug_server_on"),
    (ServerCommand::DebugOff, "debug_server_off"),
    (ServerCommand::LoadGraph, "server_load"),
    (ServerCommand::StatsReset, "stats_reset"),
    (ServerCommand::ReloadPasswords, "reloadpasswdfile"),
    (ServerCommand::Stats, "stats_server"),
    (ServerCommand::ReloadCustomPasswords, "reloadcustompasswdfile"),
];

/// The kinds of [`NodeCommand`] with their option, in the order of their numbers, from 1.
#[rustfmt::skip]
pub(super) const NODE_COMMANDS: [(NodeCommand, &str); 6] = [
    (NodeCommand::Submit, "job_gen"),
    (NodeCommand::CheckJobs, "checkJobGenOnly"),
    (NodeCommand::Get, "get"),
    (NodeCommand::Why, "why"),
    (NodeCommand::GetState, "get_state"),
    (NodeCommand::Migrate, "migrate"),
];

/// The kinds of [`PathsCommand`] with their option, in the order of their numbers, from 1.
#[rustfmt::skip]
pub(super) const PATHS_COMMANDS: [(PathsCommand, &str); 8] = [
    (PathsCommand::Suspend, "suspend"),
    (PathsCommand::Resume, "resume"),
    (PathsCommand::Kill, "kill"),
    (PathsCommand::Status, "status"),
    (PathsCommand::Check, "check"),
    (PathsCommand::History, "edit_history"),
    (PathsCommand::Archive, "archive"),
    (PathsCommand::Restore, "restore"),
];

/// The kinds of [`SyncKind`] with their option, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const SYNC_KINDS: [(SyncKind, &str); 4] = [
    (SyncKind::News, "news"),
    (SyncKind::Changes, "sync"),
    (SyncKind::Full, "sync_full"),
    (SyncKind::Clock, "sync_clock"),
];

/// The orders with their words, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const ORDERS: [(Order, &str); 7] = [
    (Order::Top, "top"),
    (Order::Bottom, "bottom"),
    (Order::Alpha, "alpha"),
    (Order::Reverse, "order"),
    (Order::Up, "up"),
    (Order::Down, "down"),
    (Order::RunTime, "runtime"),
];

/// The requeues with their words, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const REQUEUES: [(Requeue, &str); 3] = [
    (Requeue::Node, ""),
    (Requeue::Aborted, "abort"),
    (Requeue::Force, "force"),
];

/// The actions with their words, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const ZOMBIE_ACTIONS: [(ZombieAction, &str); 6] = [
    (ZombieAction::Fob, "fob"),
    (ZombieAction::Fail, "fail"),
    (ZombieAction::Adopt, "adopt"),
    (ZombieAction::Remove, "remove"),
    (ZombieAction::Block, "block"),
    (ZombieAction::Kill, "kill"),
];

/// The files with their words, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const FILE_KINDS: [(FileKind, &str); 6] = [
    (FileKind::Script, "script"),
    (FileKind::Job, "job"),
    (FileKind::Output, "jobout"),
    (FileKind::Manual, "manual"),
    (FileKind::Kill, "kill"),
    (FileKind::Status, "stat"),
];

impl FileKind {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        FILE_KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// The edits with their words, in the order of their numbers, from 0.
#[rustfmt::skip]
pub(super) const EDITS: [(Edit, &str); 5] = [
    (Edit::Edit, "edit"),
    (Edit::PreProcess, "pre_process"),
    (Edit::Submit, "submit"),
    (Edit::PreProcessFile, "pre_process_file"),
    (Edit::SubmitFile, "submit_file"),
];

/// What can be added, in the order of `add_attr_type_`; 6 is none of them.
#[rustfmt::skip]
pub const ADDED: [&str; 11] = [
    "time", "today", "date", "day", "zombie", "variable", "", "late", "limit", "inlimit", "label",
];

/// What can be deleted, in the order of `del_attr_type_`; 16 is none of them.
#[rustfmt::skip]
pub const DELETED: [&str; 20] = [
    "variable", "time", "today", "date", "day", "cron", "event", "meter", "label", "trigger",
    "complete", "repeat", "limit", "limit_path", "inlimit", "zombie", "", "late", "queue",
    "generic",
];

/// What can be changed, in the order of `change_attr_type_`; 13 is none of them.
#[rustfmt::skip]
pub const CHANGED: [&str; 18] = [
    "variable", "clock_type", "clock_date", "clock_gain", "event", "meter", "label", "trigger",
    "complete", "repeat", "limit_max", "limit_value", "defstatus", "", "clock_sync", "late", "time",
    "today",
];

/// The words of flags, in the order of their bits; 19 is none of them.
#[rustfmt::skip]
pub const FLAGS: [&str; 25] = [
    "force_aborted", "user_edit", "task_aborted", "edit_failed", "ecfcmd_failed", "no_script",
    "killed", "late", "message", "by_rule", "queue_limit", "task_waiting", "locked", "zombie",
    "no_reque", "archived", "restored", "threshold", "sigterm", "not_set", "log_error",
    "checkpt_error", "killcmd_failed", "statuscmd_failed", "status",
];
