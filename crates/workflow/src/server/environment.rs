//! What an ecFlow server takes from its environment: ECF_* variables, and the files of a host and
//! port.

use std::path::{Path, PathBuf};
use std::time::Duration;

macro_rules! version {
    () => {
        "5.9.2"
    };
}

/// The version of ecFlow whose protocol and text are spoken.
pub const ECFLOW_VERSION: &str = version!();

/// What the server says of itself in `--stats`, and to `ecflow_server --version`.
pub const VERSION_LINE: &str =
    concat!("Ecflow version(", version!(), ") protocol(JSON cereal 1.3.0) loadline");

/// The bounds of the ports that ecFlow's programs accept.
pub const PORTS: std::ops::RangeInclusive<u16> = 1024..=49151;

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Only when asked for.
    Never,
    /// After the interval.
    OnTime,
    /// After each change, too.
    Always,
}

impl CheckMode {
    pub(super) const fn variable(self) -> &'static str {
        match self {
            Self::Never => "CHECK_NEVER",
            Self::OnTime => "CHECK_ON_TIME",
            Self::Always => "CHECK_ALWAYS",
        }
    }

    /// Its number, of which clients show the name.
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Never => 0,
            Self::OnTime => 1,
            Self::Always => 2,
        }
    }

    /// The mode that a client's number stands for.
    pub(super) const fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Never),
            1 => Some(Self::OnTime),
            2 => Some(Self::Always),
            _ => None,
        }
    }
}

/// The most seconds between two checkpoints: a year, which clocks can still add.
const MOST_INTERVAL_S: i64 = 366 * 24 * 3600;

/// The seconds beyond which a checkpoint is named in the log.
const ALARM_S: i64 = 20;

/// When checkpoints are written, as users have set it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckSettings {
    pub(super) mode: CheckMode,
    pub(super) interval_s: i64,
    /// The seconds beyond which one is named in the log.
    pub(super) alarm_s: i64,
}

impl CheckSettings {
    pub(super) fn of(environment: &Environment) -> Self {
        let interval_s = environment.check_interval_s.into();
        Self { mode: environment.check_mode, interval_s, alarm_s: ALARM_S }
    }

    /// Changes what is not zero.
    pub(super) fn set(&mut self, mode: Option<CheckMode>, interval: i64, alarm: i64) {
        self.mode = mode.unwrap_or(self.mode);
        if interval > 0 {
            self.interval_s = interval.min(MOST_INTERVAL_S);
        }
        if alarm > 0 {
            self.alarm_s = alarm;
        }
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_s.unsigned_abs().max(1))
    }
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Environment {
    /// ECF_HOME.
    pub home: PathBuf,
    /// The host's name, as it is in the names of files.
    pub host: String,
    /// ECF_HOST: what jobs call this host, its name unless that isn't where the server listens.
    pub jobs_host: String,
    /// Whether other machines reach the server.
    pub is_public: bool,
    /// The port.
    pub port: u16,
    /// ECF_LOG.
    pub log: PathBuf,
    /// ECF_CHECK.
    pub check: PathBuf,
    /// ECF_CHECKOLD.
    pub check_old: PathBuf,
    /// ECF_LISTS, as shown: relative to ECF_HOME.
    pub lists: String,
    /// ECF_PASSWD, as shown.
    pub passwords: String,
    /// ECF_CUSTOM_PASSWD, as shown.
    pub custom_passwords: String,
    /// ECF_CHECKINTERVAL, in seconds.
    pub check_interval_s: u32,
    /// ECF_CHECKMODE.
    pub check_mode: CheckMode,
    /// ECF_PRUNE_NODE_LOG: after how many days lines of the edit history go, at a start; 0: none.
    pub history_days: u32,
    /// ECF_TASK_THRESHOLD: how long it may take to make a job before the log names it.
    pub task_threshold: Duration,
    /// Seconds between two looks at time attributes: each is a minute of the suites' calendars.
    pub interval_s: u32,
    /// ECF_MICRO and the commands, by their variables.
    pub commands: Vec<(&'static str, String)>,
    /// Whether jobs are started, commands of theirs (ECF_KILL_CMD, ECF_STATUS_CMD), and nodes sent
    /// to other servers (not with `--dis_job_gen`).
    pub starts_jobs: bool,
    /// ECF_SSL as jobs and `stats` get it, where connections are encrypted.
    pub ssl: Option<String>,
}

/// The commands that a server has unless its environment says otherwise.
const COMMANDS: [(&str, &str); 8] = [
    ("ECF_MICRO", "%"),
    ("ECF_JOB_CMD", "%ECF_JOB% 1> %ECF_JOBOUT% 2>&1"),
    ("ECF_KILL_CMD", "kill -15 %ECF_RID%"),
    ("ECF_STATUS_CMD", "ps --pid %ECF_RID% -f > %ECF_JOB%.stat 2>&1"),
    ("ECF_URL_CMD", "${BROWSER:=firefox} -new-tab %ECF_URL_BASE%/%ECF_URL%"),
    ("ECF_URL_BASE", "https://confluence.ecmwf.int"),
    ("ECF_URL", "display/ECFLOW/ecflow+home"),
    ("ECF_CHECK_CMD", "ps --pid %ECF_RID% -f"),
];

/// The host's name.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

impl Environment {
    /// The environment of a server at `port` with files below `home`; `variable` looks up ECF_*.
    ///
    /// # Errors
    /// When a variable is no number; the error names it.
    pub fn new(
        home: &Path,
        port: u16,
        interval_s: u32,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let host = host_name();
        let file = |name: &str, usual: &str| match variable(name).filter(|one| !one.is_empty()) {
            Some(own) if own != usual => own,
            _ => format!("{host}.{port}.{usual}"),
        };
        let check_interval_s = match variable("ECF_CHECKINTERVAL") {
            None => 120,
            Some(text) => text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
                format!("ECF_CHECKINTERVAL is {text:?}: it has to be a number of seconds")
            })?,
        };
        let history_days = match variable("ECF_PRUNE_NODE_LOG") {
            None => 30,
            Some(text) => text.parse().map_err(|_| {
                format!("ECF_PRUNE_NODE_LOG is {text:?}: it has to be a number of days")
            })?,
        };
        let threshold_ms = match variable("ECF_TASK_THRESHOLD") {
            None => 4_000,
            Some(text) => text.parse::<u32>().map_err(|_| {
                format!("ECF_TASK_THRESHOLD is {text:?}: it has to be a number of milliseconds")
            })?,
        };
        let commands = COMMANDS
            .map(|(name, usual)| (name, variable(name).unwrap_or_else(|| usual.to_owned())));
        Ok(Self {
            log: home.join(file("ECF_LOG", "ecf.log")),
            check: home.join(file("ECF_CHECK", "ecf.check")),
            check_old: home.join(file("ECF_CHECKOLD", "ecf.check.b")),
            lists: file("ECF_LISTS", "ecf.lists"),
            passwords: file("ECF_PASSWD", "ecf.passwd"),
            custom_passwords: file("ECF_CUSTOM_PASSWD", "ecf.custom_passwd"),
            home: home.to_owned(),
            jobs_host: host.clone(),
            is_public: false,
            host,
            port,
            check_interval_s,
            check_mode: CheckMode::OnTime,
            history_days,
            task_threshold: Duration::from_millis(threshold_ms.into()),
            interval_s,
            commands: commands.into(),
            starts_jobs: true,
            ssl: None,
        })
    }

    /// Whether connections are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.ssl.is_some()
    }

    /// How connections are encrypted, in ecFlow's words.
    pub(super) fn encryption(&self) -> String {
        match self.ssl.as_deref() {
            None => "disabled".to_owned(),
            Some("1") => "1 : enabled : uses shared ssl certificates".to_owned(),
            Some(own) => format!("{own} : enabled : uses server/port specific ssl certificates"),
        }
    }

    /// The server's variables, in the order of ecFlow's.
    pub fn variables(&self) -> Vec<(String, String)> {
        let shown = |path: &Path| path.display().to_string();
        let command = |name: &str| {
            let found = self.commands.iter().find(|(one, _)| *one == name);
            found.map_or_else(String::new, |(_, command)| command.clone())
        };
        let all = [
            ("ECF_MICRO", command("ECF_MICRO")),
            ("ECF_HOME", shown(&self.home)),
            ("ECF_JOB_CMD", command("ECF_JOB_CMD")),
            ("ECF_KILL_CMD", command("ECF_KILL_CMD")),
            ("ECF_STATUS_CMD", command("ECF_STATUS_CMD")),
            ("ECF_URL_CMD", command("ECF_URL_CMD")),
            ("ECF_URL_BASE", command("ECF_URL_BASE")),
            ("ECF_URL", command("ECF_URL")),
            ("ECF_LOG", shown(&self.log)),
            ("ECF_INTERVAL", self.interval_s.to_string()),
            ("ECF_LISTS", self.lists.clone()),
            ("ECF_PASSWD", self.passwords.clone()),
            ("ECF_CUSTOM_PASSWD", self.custom_passwords.clone()),
            ("ECF_CHECK", shown(&self.check)),
            ("ECF_CHECKOLD", shown(&self.check_old)),
            ("ECF_CHECKINTERVAL", self.check_interval_s.to_string()),
            ("ECF_CHECKMODE", self.check_mode.variable().to_owned()),
            ("ECF_TRIES", "2".to_owned()),
            ("ECF_VERSION", ECFLOW_VERSION.to_owned()),
            ("ECF_PORT", self.port.to_string()),
            ("ECF_HOST", self.jobs_host.clone()),
            ("ECF_CHECK_CMD", command("ECF_CHECK_CMD")),
            ("ECF_PID", std::process::id().to_string()),
        ];
        let ssl = self.ssl.clone().map(|ssl| ("ECF_SSL", ssl));
        all.into_iter().chain(ssl).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Environment;
    use std::path::Path;

    #[test]
    fn files_are_of_a_host_and_port_unless_the_environment_names_them() {
        let variable = |name: &str| match name {
            "ECF_LOG" => Some("/var/log/x".to_owned()),
            "ECF_CHECK" => Some("ecf.check".to_owned()),
            "ECF_CHECKINTERVAL" => Some("30".to_owned()),
            _ => None,
        };
        let made = Environment::new(Path::new("/h"), 3141, 60, variable).expect("numbers");
        let host = &made.host;
        assert_eq!(made.log, Path::new("/var/log/x"));
        assert_eq!(made.check, Path::new(&format!("/h/{host}.3141.ecf.check")));
        assert_eq!(made.lists, format!("{host}.3141.ecf.lists"));
        assert_eq!(made.check_interval_s, 30);
        let all = made.variables();
        assert_eq!(all[0], ("ECF_MICRO".to_owned(), "%".to_owned()));
        let wrong = Environment::new(Path::new("/h"), 1, 60, |_| Some("x".to_owned()));
        assert!(wrong.expect_err("no number").contains("ECF_CHECKINTERVAL"));
    }
}
