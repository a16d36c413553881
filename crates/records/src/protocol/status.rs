//! How an operation ended.

use std::fmt;
use std::sync::Arc;

use super::{Reader, Sink, Writer};

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Success. Texts for people use it for plain information.
    #[default]
    Ok,
    /// It worked, but.
    Warning,
    /// It didn't work.
    Error,
    /// It will never work.
    Fatal,
}

impl Severity {
    /// Its number on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The severity with that number; one that is unknown counts as the worst.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Warning,
            2 => Self::Error,
            _ => Self::Fatal,
        }
    }
}

/// How an operation ended, and what a human should know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How bad it is.
    pub severity: Severity,
    /// What happened.
    pub text: Arc<str>,
    /// Where it happened, for programmers.
    pub trace: Arc<str>,
}

impl Status {
    /// All is well.
    pub fn ok() -> Self {
        Self::default()
    }

    /// It didn't work, because of `text`.
    pub fn error(text: impl AsRef<str>) -> Self {
        Self { severity: Severity::Error, text: Arc::from(text.as_ref()), trace: Arc::from("") }
    }

    /// Whether it worked, perhaps with a warning: then what was asked for follows.
    pub fn is_success(&self) -> bool {
        self.severity <= Severity::Warning
    }

    /// Appends it; a plain success is one byte.
    pub fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) {
        if *self == Self::default() {
            return writer.u8(255);
        }
        writer.u8(self.severity.code());
        writer.text(&self.text);
        writer.text(&self.trace);
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        match reader.u8() {
            255 => Self::default(),
            code => {
                let (text, trace) = (reader.text(), reader.text());
                Self { severity: Severity::of_code(code), text, trace }
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.severity, &*self.text) {
            (Severity::Ok, "") => f.write_str("ok"),
            (severity, "") => write!(f, "{severity:?}"),
            (_, text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Reader, Writer};
    use super::{Severity, Status};

    #[test]
    fn the_examples_of_the_specification() {
        let mut bytes = Vec::new();
        let warning =
            Status { severity: Severity::Warning, text: "Low memory".into(), trace: "".into() };
        Status::ok().write(&mut Writer::new(&mut bytes, Order::Big));
        warning.write(&mut Writer::new(&mut bytes, Order::Big));
        assert_eq!(bytes, b"\xFF\x01\x0aLow memory\x00");
        let mut reader = Reader::new(&bytes, Order::Big);
        assert_eq!([(); 2].map(|()| Status::read(&mut reader)), [Status::ok(), warning]);
        reader.end().unwrap();
    }
}
