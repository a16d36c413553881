//! Access rules by record, user and host, of which the first that fits decides.

use std::fmt;

/// What a client may do with a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Nothing: there is no channel to it.
    None,
    /// Look at it.
    Read,
    /// Change it, too, where the record itself allows that.
    #[default]
    Write,
}

/// One rule. Its patterns are texts in which `*` stands for any characters; a list that is absent
/// fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The records' names.
    #[serde(default)]
    pub records: Vec<String>,
    /// The users' names, as clients give them.
    #[serde(default)]
    pub users: Vec<String>,
    /// The addresses that connections come from.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What is allowed.
    pub rights: Rights,
}

/// All rules. Where none fits, everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access(pub Vec<Rule>);

impl Access {
    /// What a user may do with a record from a host.
    pub fn rights(&self, record: &str, user: &str, host: &str) -> Rights {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
        };
        let fitting = self.0.iter().find(|rule| {
            any(&rule.records, record) && any(&rule.users, user) && any(&rule.hosts, host)
        });
        fitting.map_or(Rights::Write, |rule| rule.rights)
    }
}

/// Whether a text fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Rights, Rule, fits};

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, does) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("10.0.*", "10.0.7.1", true),
            ("*b*c", "abxbc", true),
            ("*b*c", "acb", false),
        ] {
            assert_eq!(fits(pattern, text), does, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let rule = |records: &[&str], users: &[&str], rights| Rule {
            records: texts(records),
            users: texts(users),
            hosts: Vec::new(),
            rights,
        };
        let access = Access(vec![
            rule(&["beam:*"], &["alice"], Rights::Write),
            rule(&["beam:secret"], &[], Rights::None),
            rule(&["beam:*"], &[], Rights::Read),
        ]);
        assert_eq!(access.rights("beam:secret", "alice", ""), Rights::Write);
        assert_eq!(access.rights("beam:secret", "bob", ""), Rights::None);
        assert_eq!(access.rights("beam:current", "bob", ""), Rights::Read);
        assert_eq!(access.rights("lamp", "bob", ""), Rights::Write);
    }
}
