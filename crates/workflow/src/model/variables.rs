//! Variables: those of users, upwards from a node, and those that nodes generate.

use super::attribute::{Attribute, WEEKDAYS};
use super::calendar::Calendar;
use super::node::NodeId;
use super::repeat::Repeat;
use super::state::Kind;
use super::tree::Snapshot;

/// How often values within values are replaced.
const SUBSTITUTIONS_LIMIT: usize = 100;
/// The longest text that results.
const TEXT_LIMIT: usize = 1 << 20;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Whether jobs' ECF_JOBOUT has a value. Its folder, ECF_OUT, may name variables, and all of a job
/// are looked through for them: there it is empty, or each would be made of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Named,
    Unnamed,
}

impl Snapshot {
    /// A variable of the users, at a node or above; then of the server.
    #[must_use]
    pub fn user_variable(&self, id: NodeId, name: &str) -> Option<&str> {
        let own = self.upwards(id).find_map(|id| self.own_variable(id, name));
        own.or_else(|| self.server_variable(name)).map(|value| value.as_str())
    }

    /// A variable as a job script sees it: at each node upwards the user's, the repeat's, the
    /// generated; then the server's.
    #[must_use]
    pub fn variable(&self, id: NodeId, name: &str) -> Option<String> {
        self.variable_of(id, name, Output::Named)
    }

    fn variable_of(&self, id: NodeId, name: &str, output: Output) -> Option<String> {
        for id in self.upwards(id) {
            if let Some(value) = self.own_variable(id, name) {
                return Some(value.to_string());
            }
            if let Some(value) = self.made_of(id, name, output) {
                return Some(value);
            }
        }
        self.server_variable(name).map(ToString::to_string)
    }

    /// The repeat of a node.
    #[must_use]
    pub fn repeat(&self, id: NodeId) -> Option<&Repeat> {
        self.node(id).attributes.iter().find_map(|attribute| match attribute {
            Attribute::Repeat(repeat) => Some(&**repeat),
            _ => None,
        })
    }

    /// The calendar of a suite that has begun.
    #[must_use]
    pub fn calendar(&self, suite: NodeId) -> Option<&Calendar> {
        // It is the last of all.
        match self.node(suite).attributes.last() {
            Some(Attribute::Calendar(calendar)) => Some(calendar),
            _ => None,
        }
    }

    /// A variable that a node makes: by its repeat, or by what it is.
    #[must_use]
    pub fn made_variable(&self, id: NodeId, name: &str) -> Option<String> {
        self.made_of(id, name, Output::Named)
    }

    fn made_of(&self, id: NodeId, name: &str, output: Output) -> Option<String> {
        if let Some(repeat) = self.repeat(id) {
            if repeat.name == *name {
                return Some(repeat.over.text());
            }
            let is_part =
                name.strip_prefix(repeat.name.as_str()).is_some_and(|rest| rest.starts_with('_'));
            if is_part {
                let mut parts = repeat.date_parts().into_iter();
                if let Some((_, value)) = parts.find(|(part, _)| part == name) {
                    return Some(value);
                }
            }
        }
        // All names are of capitals; others need no look.
        if !name.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'1')) {
            return None;
        }
        let all = self.generated_of(id, output);
        all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The variables that a node makes by what it is, in ecFlow's order.
    #[must_use]
    pub fn generated(&self, id: NodeId) -> Vec<(&'static str, String)> {
        self.generated_of(id, Output::Named)
    }

    fn generated_of(&self, id: NodeId, output: Output) -> Vec<(&'static str, String)> {
        match self.node(id).kind {
            Kind::Root => Vec::new(),
            Kind::Suite => self.generated_of_suite(id),
            Kind::Family => {
                let path = self.path(id);
                let below = path.splitn(3, '/').nth(2).unwrap_or("").to_owned();
                vec![("FAMILY", below), ("FAMILY1", self.node(id).name.to_string())]
            }
            Kind::Task | Kind::Alias => self.generated_of_job(id, output),
        }
    }

    fn generated_of_suite(&self, id: NodeId) -> Vec<(&'static str, String)> {
        let node = self.node(id);
        let calendar = self.calendar(id).filter(|_| node.is_begun);
        let mut values = vec![("SUITE", node.name.to_string())];
        let Some(calendar) = calendar else {
            let names = [
                "ECF_DATE",
                "YYYY",
                "DOW",
                "DOY",
                "DATE",
                "DAY",
                "DD",
                "MM",
                "MONTH",
                "ECF_CLOCK",
                "ECF_TIME",
                "ECF_JULIAN",
                "TIME",
            ];
            values.extend(names.map(|name| (name, String::new())));
            return values;
        };
        let date = calendar.suite.date();
        let (year, month, day) = date.parts();
        let weekday = WEEKDAYS[date.weekday() as usize];
        let month_name = MONTHS[(month - 1).clamp(0, 11) as usize];
        let (dow, doy) = (date.weekday(), date.day_of_year());
        let minutes = calendar.suite.time_of_day().whole_minutes();
        let (hour, minute) = (minutes / 60, minutes % 60);
        values.extend([
            ("ECF_DATE", format!("{year:04}{month:02}{day:02}")),
            ("YYYY", year.to_string()),
            ("DOW", dow.to_string()),
            ("DOY", doy.to_string()),
            ("DATE", format!("{day:02}.{month:02}.{year:04}")),
            ("DAY", weekday.to_owned()),
            ("DD", format!("{day:02}")),
            ("MM", format!("{month:02}")),
            ("MONTH", month_name.to_owned()),
            ("ECF_CLOCK", format!("{weekday}:{month_name}:{dow}:{doy}")),
            ("ECF_TIME", format!("{hour:02}:{minute:02}")),
            ("ECF_JULIAN", date.julian.to_string()),
            ("TIME", format!("{hour:02}{minute:02}")),
        ]);
        values
    }

    fn generated_of_job(&self, id: NodeId, output: Output) -> Vec<(&'static str, String)> {
        let node = self.node(id);
        let (path, job) = (self.path(id), node.job());
        let home = self.user_variable(id, "ECF_HOME").unwrap_or("");
        let is_alias = node.kind == Kind::Alias;
        let task = if is_alias { node.parent.unwrap_or(id) } else { id };
        let extension = self.user_variable(id, "ECF_EXTN").filter(|text| !text.is_empty());
        let extension = if is_alias { ".usr" } else { extension.unwrap_or(".ecf") };
        let try_no = job.try_no;
        let mut values = vec![
            ("TASK", self.node(task).name.to_string()),
            ("ECF_JOB", format!("{home}{path}.job{try_no}")),
            ("ECF_SCRIPT", format!("{home}{path}{extension}")),
        ];
        let mut file = String::new();
        if output == Output::Named {
            let out = self.user_variable(id, "ECF_OUT").filter(|text| !text.is_empty());
            let value = |name: &str| self.variable_of(id, name, Output::Unnamed);
            let out = out.map_or_else(
                || home.to_owned(),
                |out| substitute(out, '%', value).unwrap_or_else(|text| text),
            );
            file = format!("{out}{path}.{try_no}");
        }
        values.extend([
            ("ECF_JOBOUT", file),
            ("ECF_TRYNO", try_no.to_string()),
            ("ECF_RID", job.rid.to_string()),
            ("ECF_NAME", path),
            ("ECF_PASS", job.password.to_string()),
        ]);
        values
    }

    /// Replaces `%NAME%` and `%NAME:default%` by the variables of a node, values within values
    /// too; `%%` is one sign.
    ///
    /// # Errors
    /// The text as far as it got, where a variable is missing, a sign has no partner, or values
    /// contain themselves.
    pub fn substitute(&self, id: NodeId, text: &str, sign: char) -> Result<String, String> {
        substitute(text, sign, |name| self.variable(id, name))
    }
}

/// Replaces each name between signs by its value, as [`Snapshot::substitute`] says.
fn substitute(
    text: &str,
    sign: char,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut text = text.to_owned();
    let mut from = 0;
    for _ in 0..SUBSTITUTIONS_LIMIT {
        let Some(start) = text[from..].find(sign).map(|at| from + at) else { return Ok(text) };
        let inside = start + sign.len_utf8();
        let Some(end) = text[inside..].find(sign).map(|at| inside + at) else {
            return Err(text);
        };
        if inside == end {
            text.replace_range(start..end, "");
            from = inside;
            continue;
        }
        let (name, default) = match text[inside..end].split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (&text[inside..end], None),
        };
        let value = value(name).or_else(|| default.map(str::to_owned));
        let Some(value) = value else { return Err(text) };
        text.replace_range(start..end + sign.len_utf8(), &value);
        from = start;
        if text.len() > TEXT_LIMIT {
            return Err(text);
        }
    }
    Err(text)
}
