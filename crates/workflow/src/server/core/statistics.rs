//! `--stats`: how many requests of each kind the server has been asked since it started.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::protocol::{
    Body, Command, FileKind, NodeCommand, PathsCommand, Report, ServerCommand, Stats, SyncKind,
    ZombieAction,
};

/// The kinds of requests, in the order in which `SStatsCmd` has their counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
enum Kind {
    CheckPoint, Version, Restart, Shutdown, Halt, WhiteList, Passwords, Ping, DebugOn, DebugOff,
    Get, Sync, SyncFull, SyncClock, News,
    Submit, CheckJobs, Delete, Suspend, Resume, Kill, Status, History, Archive, Restore,
    Log, Message, Begin,
    Init, Complete, Wait, Abort, Event, Meter, Label, Queue,
    ZombieFob, ZombieFail, ZombieAdopt, ZombieRemove, ZombieGet, ZombieBlock, ZombieKill,
    Requeue, Order, Run, Load, Replace, Force, FreeDependencies, Suites, EditScript,
    Alter, Handle, FileScript, FileJob, FileOutput, FileCommand, FileManual,
    Plug, Move, Group, LoadGraph, Stats, Check, Query,
    /// Shown, but not in `SStatsCmd`.
    RestoreCheckPoint,
}

/// The kinds whose counts are in `SStatsCmd`.
const SENT: usize = Kind::RestoreCheckPoint as usize;

/// The kinds in the order in which `--stats` shows them, in paragraphs.
#[rustfmt::skip]
const SHOWN: [&[(Kind, &str)]; 5] = [
    &[
        (Kind::CheckPoint, "Check points"), (Kind::RestoreCheckPoint, "Restore from Check point"),
        (Kind::Restart, "Restart server"), (Kind::Shutdown, "Shutdown server"),
        (Kind::Halt, "Halt server"), (Kind::Ping, "Ping"), (Kind::DebugOn, "debug server on"),
        (Kind::DebugOff, "debug server off"), (Kind::Get, "Get full definition"),
        (Kind::Version, "Server version"), (Kind::Sync, "Sync"), (Kind::SyncFull, "Sync full"),
        (Kind::SyncClock, "Sync suite clock"), (Kind::News, "News"),
    ],
    &[
        (Kind::Init, "Task init"), (Kind::Complete, "Task complete"), (Kind::Wait, "Task wait"),
        (Kind::Abort, "Task abort"), (Kind::Event, "Task event"), (Kind::Meter, "Task meter"),
        (Kind::Label, "Task label"), (Kind::Queue, "Task queue"),
    ],
    &[
        (Kind::ZombieFob, "Zombie fob"), (Kind::ZombieFail, "Zombie fail"),
        (Kind::ZombieAdopt, "Zombie adopt"), (Kind::ZombieRemove, "Zombie remove"),
        (Kind::ZombieGet, "Zombie get"), (Kind::ZombieBlock, "Zombie block"),
        (Kind::ZombieKill, "Zombie kill"),
    ],
    &[
        (Kind::Load, "Load definition"), (Kind::Begin, "Begin"), (Kind::Requeue, "Requeue"),
        (Kind::Submit, "Job generation"), (Kind::CheckJobs, "Check Job generation"),
        (Kind::Delete, "Node delete"), (Kind::Suspend, "Node suspend"),
        (Kind::Resume, "Node resume"), (Kind::Kill, "Node kill"), (Kind::Status, "Node status"),
        (Kind::History, "Node edit history"), (Kind::Archive, "Node archive"),
        (Kind::Restore, "Node restore"), (Kind::Log, "Log cmd"), (Kind::Message, "Log message"),
        (Kind::Order, "Order"), (Kind::Run, "Run"), (Kind::Replace, "Replace"),
        (Kind::Force, "Force "), (Kind::FreeDependencies, "Free dependencies"),
        (Kind::Suites, "Suites"), (Kind::EditScript, "Edit script"), (Kind::Alter, "Alter"),
        (Kind::Handle, "Client handle"), (Kind::Plug, "Plug"), (Kind::Move, "Move"),
        (Kind::Group, "Group"), (Kind::LoadGraph, "Server load cmd"), (Kind::Stats, "stats cmd"),
        (Kind::Check, "checks"), (Kind::Query, "query"),
        (Kind::WhiteList, "Reload white list file"), (Kind::Passwords, "Reload password file"),
    ],
    &[
        (Kind::FileScript, "File ECF"), (Kind::FileJob, "File job"),
        (Kind::FileOutput, "File Job out"), (Kind::FileCommand, "File Cmd out"),
        (Kind::FileManual, "File manual"),
    ],
];

/// Looks at times whose requests are kept, for rates.
const MAX_LOOKS: usize = 60;

/// Counts of requests.
pub(in crate::server) struct Statistics {
    counts: [u32; SENT + 1],
    /// Since the last look at times.
    requests: u32,
    /// Requests before each of the last looks, the newest first.
    looks: VecDeque<u32>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { counts: [0; SENT + 1], requests: 0, looks: VecDeque::new() }
    }
}

impl Statistics {
    /// Counts a request, and those of a group.
    pub(in crate::server) fn count(&mut self, body: &Body) {
        self.requests += 1;
        self.count_kind(body);
    }

    /// Counts pings.
    pub(in crate::server) fn count_pings(&mut self, count: u32) {
        self.requests += count;
        self.counts[Kind::Ping as usize] += count;
    }

    fn count_kind(&mut self, body: &Body) {
        if let Some(kind) = kind(body) {
            self.counts[kind as usize] += 1;
        }
        if let Body::User(_, Command::Group(all)) = body {
            all.iter().for_each(|request| self.count_kind(&request.body));
        }
    }

    /// Forgets the counts, for `--stats_reset`.
    pub(super) fn reset(&mut self) {
        self.counts = [0; SENT + 1];
    }

    /// Closes the time between two looks at times.
    pub(in crate::server) fn look(&mut self) {
        self.looks.push_front(std::mem::take(&mut self.requests));
        self.looks.truncate(MAX_LOOKS);
    }

    /// Requests a second over the last 1, 5, 15, 30 and 60 looks, of those that there were.
    pub(super) fn rates(&self, interval_s: u32) -> String {
        let mut rates = Vec::new();
        let mut requests = 0;
        for (passed, &count) in (1_u32..).zip(&self.looks) {
            requests += count;
            if matches!(passed, 1 | 5 | 15 | 30 | 60) {
                let seconds = f64::from(passed) * f64::from(interval_s);
                rates.push(format!("{:.2}", f64::from(requests) / seconds));
            }
        }
        rates.join(" ")
    }

    /// The counts in the order of `SStatsCmd`.
    pub(in crate::server) fn sent(&self) -> Vec<i64> {
        self.counts[..SENT].iter().map(|&count| count.into()).collect()
    }

    /// What `--stats` shows.
    pub(super) fn text(&self, stats: &Stats) -> String {
        let word = |words: [&'static str; 3], number: i64| {
            words[usize::try_from(number).unwrap_or(0).min(2)]
        };
        let modes = ["CHECK_NEVER", "CHECK_ON_TIME", "CHECK_ON_ALWAYS"];
        let rows = [
            ("Version", stats.version.clone()),
            ("Status", word(["HALTED", "SHUTDOWN", "RUNNING"], stats.state).to_owned()),
            ("Host", stats.host.clone()),
            ("Port", stats.port.clone()),
            ("Up since", stats.up_since.clone()),
            ("Job sub' interval", format!("{}s", stats.job_interval)),
            ("ECF_HOME", stats.home.clone()),
            ("ECF_LOG", stats.log_file.clone()),
            ("ECF_CHECK", stats.check_file.clone()),
            ("ECF_SSL", stats.encryption.clone()),
            ("Check pt interval", format!("{}s", stats.check_interval)),
            ("Check pt mode", word(modes, stats.check_mode).to_owned()),
            ("Check pt save time alarm", format!("{}s", stats.check_alarm)),
            ("Number of Suites", stats.suites.to_string()),
            ("Request's per 1,5,15,30,60 min ", stats.rates.clone()),
        ];
        let mut text = "Server statistics\n".to_owned();
        // Writing to a string can't fail.
        for (name, value) in rows {
            let _ = writeln!(text, "   {name:<32}{value}");
        }
        for paragraph in SHOWN {
            let counted = paragraph.iter().map(|&(kind, name)| (self.counts[kind as usize], name));
            for (place, (count, name)) in counted.filter(|(count, _)| *count > 0).enumerate() {
                let before = if place == 0 { "\n" } else { "" };
                let _ = writeln!(text, "{before}   {name:<32}{count}");
            }
        }
        text
    }
}

/// The kind of a request that is counted.
fn kind(body: &Body) -> Option<Kind> {
    match body {
        Body::Child(_, report) => Some(match report {
            Report::Init(_) => Kind::Init,
            Report::Complete(_) => Kind::Complete,
            Report::Abort(_) => Kind::Abort,
            Report::Event { .. } => Kind::Event,
            Report::Meter { .. } => Kind::Meter,
            Report::Label { .. } => Kind::Label,
            Report::Wait(_) => Kind::Wait,
            Report::Queue { .. } => Kind::Queue,
        }),
        Body::User(_, command) => kind_of_command(command),
    }
}

fn kind_of_command(command: &Command) -> Option<Kind> {
    Some(match command {
        Command::Server(command) => return kind_of_server(*command),
        Command::Version => Kind::Version,
        Command::CheckPoint { .. } => Kind::CheckPoint,
        Command::Sync { kind, .. } => match kind {
            SyncKind::News => Kind::News,
            SyncKind::Changes => Kind::Sync,
            SyncKind::Full => Kind::SyncFull,
            SyncKind::Clock => Kind::SyncClock,
        },
        Command::Handle(_) => Kind::Handle,
        Command::Node(command, _) => match command {
            NodeCommand::Submit => Kind::Submit,
            NodeCommand::CheckJobs => Kind::CheckJobs,
            NodeCommand::Get | NodeCommand::GetState | NodeCommand::Migrate => Kind::Get,
            NodeCommand::Why => return None,
        },
        Command::Delete { .. } => Kind::Delete,
        Command::Paths { command, .. } => match command {
            PathsCommand::Suspend => Kind::Suspend,
            PathsCommand::Resume => Kind::Resume,
            PathsCommand::Kill => Kind::Kill,
            PathsCommand::Status => Kind::Status,
            PathsCommand::Check => Kind::Check,
            PathsCommand::History => Kind::History,
            PathsCommand::Archive => Kind::Archive,
            PathsCommand::Restore => Kind::Restore,
        },
        Command::Log(_) => Kind::Log,
        Command::Message(_) => Kind::Message,
        Command::Begin { .. } => Kind::Begin,
        Command::Zombie { action, .. } => match action {
            ZombieAction::Fob => Kind::ZombieFob,
            ZombieAction::Fail => Kind::ZombieFail,
            ZombieAction::Adopt => Kind::ZombieAdopt,
            ZombieAction::Remove => Kind::ZombieRemove,
            ZombieAction::Block => Kind::ZombieBlock,
            ZombieAction::Kill => Kind::ZombieKill,
        },
        Command::Requeue { .. } => Kind::Requeue,
        Command::Order { .. } => Kind::Order,
        Command::Run { .. } => Kind::Run,
        Command::Show => return None,
        Command::Load { .. } => Kind::Load,
        Command::Replace { .. } => Kind::Replace,
        Command::Force { .. } => Kind::Force,
        Command::FreeDependencies { .. } => Kind::FreeDependencies,
        Command::Alter { .. } => Kind::Alter,
        Command::File { kind, .. } => match kind {
            FileKind::Script => Kind::FileScript,
            FileKind::Job => Kind::FileJob,
            FileKind::Output => Kind::FileOutput,
            FileKind::Manual => Kind::FileManual,
            FileKind::Kill | FileKind::Status => Kind::FileCommand,
        },
        Command::EditScript { .. } => Kind::EditScript,
        Command::Plug { .. } => Kind::Plug,
        Command::Move { .. } => Kind::Move,
        Command::Query { .. } => Kind::Query,
        Command::Group(_) => Kind::Group,
    })
}

const fn kind_of_server(command: ServerCommand) -> Option<Kind> {
    Some(match command {
        ServerCommand::Restore => Kind::RestoreCheckPoint,
        ServerCommand::Restart => Kind::Restart,
        ServerCommand::Shutdown => Kind::Shutdown,
        ServerCommand::Halt => Kind::Halt,
        ServerCommand::ReloadWhiteList => Kind::WhiteList,
        ServerCommand::Ping => Kind::Ping,
        ServerCommand::Zombies => Kind::ZombieGet,
        ServerCommand::StatsText | ServerCommand::Stats => Kind::Stats,
        ServerCommand::Suites => Kind::Suites,
        ServerCommand::DebugOn => Kind::DebugOn,
        ServerCommand::DebugOff => Kind::DebugOff,
        ServerCommand::LoadGraph => Kind::LoadGraph,
        ServerCommand::ReloadPasswords | ServerCommand::ReloadCustomPasswords => Kind::Passwords,
        ServerCommand::Terminate | ServerCommand::EvaluateAll | ServerCommand::StatsReset => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn rates_are_of_the_looks_that_there_were() {
        let mut statistics = Statistics::default();
        assert_eq!(statistics.rates(60), "");
        for requests in [0, 0, 0, 30, 120] {
            statistics.requests = requests;
            statistics.look();
        }
        assert_eq!(statistics.rates(60), "2.00 0.50");
        (0..100).for_each(|_| statistics.look());
        assert_eq!(statistics.looks.len(), 60);
    }
}
