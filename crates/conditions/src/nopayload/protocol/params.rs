//! The parameters of a request.

use crate::nopayload::model::Moment;

/// The pairs of a query, as they were written. Of several of one name the last one counts.
#[derive(Clone, Debug, Default)]
pub struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// That of one that is not empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }
}

/// The form of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A list of values.
    List,
    /// An object by the names of columns: `shape=dict`.
    Dict,
}

/// What is asked of a global tag at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The tag.
    pub tag: String,
    /// The moment; `None` before all of them.
    pub at: Option<Moment>,
    /// The form of the answer.
    pub shape: Shape,
    /// Whether what has ended by then is left out: `strict=1`.
    pub is_strict: bool,
}

impl Query {
    /// Reads the parameters.
    ///
    /// # Errors
    /// When one is missing, or is no number; the error says which.
    pub fn read(pairs: &Pairs) -> Result<Self, String> {
        let needed = |name| pairs.get(name).ok_or_else(|| format!("{name} is missing"));
        let number = |name| {
            let written: &str = needed(name)?;
            let read = written.trim().parse::<i128>();
            read.map_err(|_| format!("{name}={written}: write an integer"))
        };
        let tag = needed("gtName")?.to_owned();
        let at = Moment::floor(number("majorIOV")?, number("minorIOV")?);
        let shape = match pairs.get("shape") {
            Some("dict") => Shape::Dict,
            _ => Shape::List,
        };
        let is_strict = match pairs.get("strict") {
            None | Some("0") => false,
            Some("1") => true,
            Some(other) => return Err(format!("strict={other}: write 1 or 0")),
        };
        Ok(Self { tag, at, shape, is_strict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Query, String> {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name.to_owned(), value.to_owned())
        };
        Query::read(&Pairs(query.split('&').map(pair).collect()))
    }

    #[test]
    fn a_question_names_its_tag_and_its_moment() {
        let asked = read("gtName=a&majorIOV=1&majorIOV=2&minorIOV=3&shape=dict&strict=1");
        let (tag, at) = ("a".to_owned(), Some(Moment::of(2, 3)));
        assert_eq!(asked, Ok(Query { tag, at, shape: Shape::Dict, is_strict: true }));
        assert_eq!(read("gtName=a&majorIOV=-1&minorIOV=3").map(|asked| asked.at), Ok(None));
        for (query, why) in [
            ("majorIOV=1&minorIOV=1", "gtName is missing"),
            ("gtName=a&minorIOV=1", "majorIOV is missing"),
            ("gtName=a&majorIOV=1.5&minorIOV=1", "majorIOV=1.5: write an integer"),
            ("gtName=a&majorIOV=1&minorIOV=", "minorIOV=: write an integer"),
            ("gtName=a&majorIOV=1&minorIOV=1&strict=yes", "strict=yes: write 1 or 0"),
        ] {
            assert_eq!(read(query), Err(why.to_owned()));
        }
    }
}
