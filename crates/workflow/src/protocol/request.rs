//! What clients ask: the commands of users, and those by which jobs report.

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's host, as it says.
    pub host: String,
    /// Who asks, and what.
    pub body: Body,
}

/// Who asks, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A user's command.
    User(User, Command),
    /// A job's report.
    Child(Child, Report),
}

/// A user, as the client says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password, hashed by `crypt`; empty without one.
    pub password: String,
    /// Whether the name is not the login's (ECF_USER).
    pub is_custom: bool,
}

/// A job, as the client says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Child {
    /// The task's path (ECF_NAME).
    pub path: String,
    /// The password of this try (ECF_PASS).
    pub password: String,
    /// The process or the queue's number (ECF_RID), as [`one_word`].
    pub process_id: String,
    /// The number of this try (ECF_TRYNO).
    pub try_no: i64,
}

/// The same with `_` for blanks, control characters and `#<>`. A job's identifier stands among the
/// other words of a node's state in trees, checkpoints and snapshots, where such characters would
/// make other words, lines or nodes of it.
pub fn one_word(text: String) -> String {
    let is_unfit = |c: char| c.is_whitespace() || c.is_control() || "#<>".contains(c);
    if text.contains(is_unfit) { text.replace(is_unfit, "_") } else { text }
}

/// What a job reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It has begun, and adds variables.
    Init(Vec<(String, String)>),
    /// It is complete, and removes variables.
    Complete(Vec<String>),
    /// It has failed, and why.
    Abort(String),
    /// An event is set or cleared.
    Event {
        /// Name or number.
        name: String,
        /// Whether it is set.
        is_set: bool,
    },
    /// A meter has a value.
    Meter {
        /// The meter.
        name: String,
        /// The value.
        value: i64,
    },
    /// A label has a text.
    Label {
        /// The label.
        name: String,
        /// The text.
        text: String,
    },
    /// It waits until an expression is true.
    Wait(String),
    /// It takes or returns a step of a queue.
    Queue {
        /// The queue.
        name: String,
        /// `active`, `complete`, `aborted`, `reset` or `no_of_aborted`.
        action: String,
        /// The step, for `complete` and `aborted`.
        step: String,
        /// The node that has the queue; empty for the nearest one upwards.
        path: String,
    },
}

/// What is asked of the server as a whole; the numbers of `api_` in `CtsCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCommand {
    /// `--restore_from_checkpt`
    Restore,
    /// `--restart`
    Restart,
    /// `--shutdown`
    Shutdown,
    /// `--halt`
    Halt,
    /// `--terminate`
    Terminate,
    /// `--reloadwsfile`
    ReloadWhiteList,
    /// `--force-dep-eval`
    EvaluateAll,
    /// `--ping`
    Ping,
    /// `--zombie_get`
    Zombies,
    /// `--stats`
    StatsText,
    /// `--suites`
    Suites,
    /// `--debug_server_on`
    DebugOn,
    /// `--debug_server_off`
    DebugOff,
    /// `--server_load`
    LoadGraph,
    /// `--stats_reset`
    StatsReset,
    /// `--reloadpasswdfile`
    ReloadPasswords,
    /// `--stats_server`
    Stats,
    /// `--reloadcustompasswdfile`
    ReloadCustomPasswords,
}

/// What is asked of one node, or of all with an empty path; `api_` of `CtsNodeCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeCommand {
    /// Submit what is free to run now (`--job_gen`).
    Submit,
    /// Write job files without submitting any (`--checkJobGenOnly`).
    CheckJobs,
    /// The definition.
    Get,
    /// Why it isn't running.
    Why,
    /// The definition with its state.
    GetState,
    /// The definition with state and history.
    Migrate,
}

/// What is asked of several nodes; `api_` of `PathsCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathsCommand {
    /// `--suspend`
    Suspend,
    /// `--resume`
    Resume,
    /// `--kill`
    Kill,
    /// `--status`
    Status,
    /// `--check`
    Check,
    /// `--edit_history`
    History,
    /// `--archive`
    Archive,
    /// `--restore`
    Restore,
}

/// What is asked of a client's handle, by which it follows some of the suites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandleCommand {
    /// A new handle for these suites.
    Register {
        /// The suites, which need not exist.
        suites: Vec<String>,
        /// Whether suites that are loaded later belong to it.
        takes_new: bool,
    },
    /// Drop it.
    Drop(i64),
    /// Drop all handles of a user; the caller's where none is named.
    DropUser(String),
    /// Add suites.
    Add(i64, Vec<String>),
    /// Remove suites.
    Remove(i64, Vec<String>),
    /// Whether suites that are loaded later belong to it.
    AutoAdd(i64, bool),
    /// All handles.
    Suites,
}

/// How much a client that follows wants to know; `api_` of `CSyncCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// Whether there is any news.
    News,
    /// What has changed.
    Changes,
    /// All of it.
    Full,
    /// What has changed, and the clocks of the suites.
    Clock,
}

/// What is asked of the log; `api_` of `LogCmd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogCommand {
    /// Its last lines.
    Get(i64),
    /// Empty it.
    Clear,
    /// Write what is buffered.
    Flush,
    /// Go on in another file; in the one that ECF_LOG names where the path is empty.
    New(String),
    /// Its path.
    Path,
}

/// How children are ordered; `option_` of `OrderNodeCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First of its siblings.
    Top,
    /// Last of its siblings.
    Bottom,
    /// Its children by name.
    Alpha,
    /// Its children by name, from the end.
    Reverse,
    /// One place up.
    Up,
    /// One place down.
    Down,
    /// Its children by their run time, the longest first.
    RunTime,
}

/// Which nodes below are queued anew; `option_` of `RequeueNodeCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// The node, unless a task below is active or submitted.
    Node,
    /// Aborted tasks below only.
    Aborted,
    /// The node, whatever runs.
    Force,
}

/// What a user decides for a zombie; `user_action_` of `ZombieCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZombieAction {
    /// Its reports succeed without effect.
    Fob,
    /// Its reports fail.
    Fail,
    /// It becomes the task's job.
    Adopt,
    /// Its record is dropped.
    Remove,
    /// It waits.
    Block,
    /// It is killed by ECF_KILL_CMD.
    Kill,
}

/// Which of a task's files; `file_` of `CFileCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The script.
    Script,
    /// The job.
    Job,
    /// The job's output.
    Output,
    /// The script's manual.
    Manual,
    /// The output of ECF_KILL_CMD.
    Kill,
    /// The output of ECF_STATUS_CMD.
    Status,
}

/// What is done with a task's script; `edit_type_` of `EditScriptCmd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The script as it is, behind the variables that it uses.
    Edit,
    /// The script with its includes.
    PreProcess,
    /// Run with other variables.
    Submit,
    /// The user's text with its includes.
    PreProcessFile,
    /// Run the user's text.
    SubmitFile,
}

/// What `--alter` does, with the word of the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// Add an attribute: one of [`ADDED`](super::ADDED).
    Add(&'static str),
    /// Delete attributes: one of [`DELETED`](super::DELETED).
    Delete(&'static str),
    /// Change an attribute: one of [`CHANGED`](super::CHANGED).
    Change(&'static str),
    /// Set or clear a flag, by its bit.
    Flag(u8, bool),
    /// Sort attributes: the name says which, the value may be `recursive`.
    Sort,
}

/// A user's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Something of the server as a whole.
    Server(ServerCommand),
    /// `--server_version`
    Version,
    /// `--check_pt`: mode 0 never, 1 on time, 2 always, 3 as it is; intervals in seconds, 0 as they
    /// are.
    CheckPoint {
        /// 0 never, 1 on time, 2 always, 3 as it is.
        mode: i64,
        /// Seconds between two; 0 as it is.
        interval: i64,
        /// Seconds beyond which one is named; 0 as it is.
        alarm: i64,
    },
    /// `--news` and `--sync`: what is new since these numbers.
    Sync {
        /// How much.
        kind: SyncKind,
        /// The handle; 0 without one.
        handle: i64,
        /// The number of the last change of state that the client has.
        state_change_no: i64,
        /// The number of the last change of structure that it has.
        modify_change_no: i64,
    },
    /// `--ch_…`
    Handle(HandleCommand),
    /// Something of one node or all.
    Node(NodeCommand, String),
    /// `--delete`: all where there is no path.
    Delete {
        /// The paths.
        paths: Vec<String>,
        /// Whether it is done in spite of what would refuse it.
        force: bool,
    },
    /// Something of several nodes.
    Paths {
        /// What.
        command: PathsCommand,
        /// The paths.
        paths: Vec<String>,
        /// Whether it is done in spite of what would refuse it.
        force: bool,
    },
    /// `--log`
    Log(LogCommand),
    /// `--msg`
    Message(String),
    /// `--begin`: all suites where none is named.
    Begin {
        /// The suite.
        suite: String,
        /// Whether it is done in spite of what would refuse it.
        force: bool,
    },
    /// `--zombie_…`
    Zombie {
        /// What is decided.
        action: ZombieAction,
        /// Of this process; of any where it is empty.
        process_id: String,
        /// With this password; with any where it is empty.
        password: String,
        /// The paths.
        paths: Vec<String>,
    },
    /// `--requeue`
    Requeue {
        /// The paths.
        paths: Vec<String>,
        /// Which nodes.
        option: Requeue,
    },
    /// `--order`
    Order {
        /// The path.
        path: String,
        /// How.
        order: Order,
    },
    /// `--run`
    Run {
        /// The paths.
        paths: Vec<String>,
        /// Whether it is done in spite of what would refuse it.
        force: bool,
    },
    /// `--show`, which only clients act on.
    Show,
    /// `--load`
    Load {
        /// Whether it is done in spite of what would refuse it.
        force: bool,
        /// The definition's text.
        definition: String,
        /// The file's name, as the client has it.
        file: String,
    },
    /// `--replace`
    Replace {
        /// Whether nodes above it are made.
        creates: bool,
        /// Whether it is done in spite of what would refuse it.
        force: bool,
        /// The path.
        path: String,
        /// The file's name, as the client has it.
        file: String,
        /// The definition's text.
        definition: String,
    },
    /// `--force`: a state of nodes, or `set` and `clear` of events, whose paths end in `:name`.
    Force {
        /// The paths.
        paths: Vec<String>,
        /// The state, `set` or `clear`.
        word: String,
        /// Whether nodes below have it too.
        recursive: bool,
        /// Whether repeats go to their last value.
        repeats_to_last: bool,
    },
    /// `--free-dep`
    FreeDependencies {
        /// The paths.
        paths: Vec<String>,
        /// Of triggers.
        trigger: bool,
        /// Of all.
        all: bool,
        /// Of dates and days.
        date: bool,
        /// Of times.
        time: bool,
    },
    /// `--alter`
    Alter {
        /// The paths.
        paths: Vec<String>,
        /// What.
        alteration: Alteration,
        /// The attribute's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `--file`
    File {
        /// Which file.
        kind: FileKind,
        /// The path.
        path: String,
        /// The most lines; of a longer file the last.
        max_lines: i64,
    },
    /// `--edit_script`
    EditScript {
        /// What.
        edit: Edit,
        /// The path.
        path: String,
        /// The user's text.
        lines: Vec<String>,
        /// The user's variables.
        variables: Vec<(String, String)>,
        /// Whether an alias is made of it.
        alias: bool,
        /// Whether it is run.
        run: bool,
    },
    /// `--plug`: from here to `host:port/path`.
    Plug {
        /// The node's path here.
        source: String,
        /// Where it goes.
        destination: String,
    },
    /// What a server sends another one for `--plug`.
    Move {
        /// The node's text.
        node: String,
        /// The host that sends it.
        host: String,
        /// Its port.
        port: String,
        /// The path.
        path: String,
        /// Where it goes.
        destination: String,
    },
    /// `--query`
    Query {
        /// What is asked: `state`, `event`, `meter` and others.
        kind: String,
        /// The path.
        path: String,
        /// The attribute, or the expression.
        attribute: String,
        /// The task that asks.
        task: String,
    },
    /// `--group`
    Group(Vec<Request>),
}
