//! PostgreSQL's own counters: how many backends wait, by the class of what they wait for, and what
//! its database has read. Control plane.
//!
//! Start-up, question and goodbye go out together, because the lab's question is always the same
//! bytes: so each is a connection, whose backend comes and goes with it. Where the server asks for
//! a password its counters are unseen.

use load::{Counter, Counters};
use wire::ProtocolError;

/// What is active now, and the database's totals.
#[derive(Debug)]
pub(in crate::load) struct Activity;

/// Version 3.0 of the protocol.
const VERSION: u32 = 3 << 16;

/// Backends that execute a statement, each by the class of its wait event or, without one, as
/// running (PostgreSQL, "The Statistics Collector", pg_stat_activity and pg_stat_database).
const QUESTION: &str = "
    SELECT class, count(a.pid) FROM unnest(ARRAY['running', 'Activity', 'BufferPin', 'Client',
        'Extension', 'IO', 'IPC', 'Lock', 'LWLock', 'Timeout']) class
    LEFT JOIN pg_stat_activity a ON a.backend_type = 'client backend' AND a.state = 'active'
        AND a.pid <> pg_backend_pid() AND coalesce(a.wait_event_type, 'running') = class
    GROUP BY class
    UNION ALL SELECT 'total ' || name, value FROM pg_stat_database, LATERAL (VALUES
        ('blocks_hit', blks_hit), ('blocks_read', blks_read), ('rows_returned', tup_returned),
        ('rows_fetched', tup_fetched), ('rows_inserted', tup_inserted), ('commits', xact_commit),
        ('temporary_bytes', temp_bytes), ('deadlocks', deadlocks)) own (name, value)
    WHERE datname = current_database()";

/// Adds a message: its tag, its length, its texts, each ended by a zero.
fn add(into: &mut Vec<u8>, tag: Option<u8>, head: &[u8], texts: &[&str]) {
    let texts: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([0])).collect();
    into.extend(tag);
    into.extend(((4 + head.len() + texts.len()) as u32).to_be_bytes());
    into.extend(head);
    into.extend(texts);
}

impl Counters for Activity {
    fn ask(&self, into: &mut Vec<u8>) {
        let parameters = ["user", "postgres", "database", "postgres", ""];
        add(into, None, &VERSION.to_be_bytes(), &parameters);
        add(into, Some(b'Q'), &[], &[QUESTION]);
        add(into, Some(b'X'), &[], &[]);
    }

    fn read(&self, bytes: &[u8], ended: bool) -> Result<Option<Vec<Counter>>, ProtocolError> {
        if !ended {
            return Ok(None);
        }
        let mut left = bytes;
        let mut counters = Vec::new();
        while let Some((tag, body)) = message(&mut left) {
            match tag {
                b'D' => counters.push(row(body).ok_or_else(|| unlike("a row of counters"))?),
                b'E' => return Err(refused(body)),
                _ => {}
            }
        }
        if counters.is_empty() {
            return Err(unlike("counters"));
        }
        Ok(Some(counters))
    }
}

fn unlike(what: &str) -> ProtocolError {
    ProtocolError::new(format!("this is no answer of PostgreSQL with {what}"))
}

/// The message of an error: its field `M`.
fn refused(body: &[u8]) -> ProtocolError {
    let fields = body.split(|byte| *byte == 0);
    let mut messages = fields.filter_map(|field| field.strip_prefix(b"M"));
    let message = messages.next().map(|message| String::from_utf8_lossy(message).into_owned());
    ProtocolError::new(message.unwrap_or_else(|| "PostgreSQL refused the question".to_owned()))
}

/// Takes the next message: its tag and what follows its length.
fn message<'a>(left: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (tag, rest) = left.split_first()?;
    let length = number(rest.get(..4)?)?;
    let body = rest.get(4..length)?;
    *left = &rest[length..];
    Some((*tag, body))
}

fn number(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
}

/// A row of a name and a value: the number of fields, and each with its length.
fn row(body: &[u8]) -> Option<Counter> {
    let mut rest = body.get(2..)?;
    let mut field = || {
        let (length, after) = rest.split_at_checked(4)?;
        let (text, after) = after.split_at_checked(number(length)?)?;
        rest = after;
        std::str::from_utf8(text).ok()
    };
    let (name, value) = (field()?, field()?.parse().ok()?);
    Some(match name.strip_prefix("total ") {
        Some(name) => Counter::total(name, value),
        None if name == "running" => Counter::level("backends_running", value),
        None => Counter::level(format!("backends_waiting_{}", name.to_lowercase()), value),
    })
}

#[cfg(test)]
mod tests {
    use load::CounterKind;

    use super::*;

    fn answer() -> Vec<u8> {
        let mut bytes = Vec::new();
        add(&mut bytes, Some(b'R'), &[0; 4], &[]);
        for (name, value) in [("LWLock", "3"), ("total blocks_hit", "77")] {
            let mut body = vec![0, 2];
            for text in [name, value] {
                body.extend((text.len() as u32).to_be_bytes());
                body.extend(text.as_bytes());
            }
            add(&mut bytes, Some(b'D'), &body, &[]);
        }
        add(&mut bytes, Some(b'C'), &[], &["SELECT 2"]);
        bytes
    }

    #[test]
    fn waits_are_levels_and_what_the_database_did_are_totals() {
        let bytes = answer();
        assert!(Activity.read(&bytes, false).unwrap().is_none(), "it has not closed yet");
        let counters = Activity.read(&bytes, true).unwrap().unwrap();
        let read: Vec<_> =
            counters.iter().map(|one| (&one.name[..], one.kind, one.value)).collect();
        let waits = ("backends_waiting_lwlock", CounterKind::Level, 3.0);
        assert_eq!(read, [waits, ("blocks_hit", CounterKind::Total, 77.0)]);
    }

    #[test]
    fn an_answer_that_is_cut_changed_or_a_refusal_is_no_panic() {
        let bytes = answer();
        for cut in 0..bytes.len() {
            let _ = Activity.read(&bytes[..cut], true);
            for change in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[cut] = change;
                let _ = Activity.read(&changed, true);
            }
        }
        let mut refusal = Vec::new();
        add(&mut refusal, Some(b'E'), &[], &["SFATAL", "Mno such user", ""]);
        let error = Activity.read(&refusal, true).unwrap_err();
        assert_eq!(error.to_string(), "no such user");
        assert!(Activity.read(b"", true).is_err());
    }
}
