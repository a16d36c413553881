//! `delete`: removes one key.

use super::tokens::{Tokens, key};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `delete`.
pub(super) static DELETE: Row = Row {
    name: "delete",
    usage: "delete KEY [noreply]",
    doc: "Removes a key.",
    may_be_quiet: true,
    read,
};

fn read(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([name, rest @ ..], _) = tokens.gather::<3>(1)?;
    // Old clients send a time of 0, which is all that was ever allowed there.
    let noreply = match rest {
        [b"", ..] | [b"0", b""] => false,
        [b"noreply", b""] | [b"0", b"noreply"] => true,
        _ => return Err(Refusal::BadDelete),
    };
    Ok(Command::Delete { key: key(name)?, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_old_clients_is_allowed_when_it_is_zero() {
        let read = |line| match read(Tokens::new(line)) {
            Ok(Command::Delete { key, noreply }) => Ok((key, noreply)),
            Ok(_) => unreachable!("a delete"),
            Err(refusal) => Err(refusal),
        };
        assert_eq!(read(b"a"), Ok((&b"a"[..], false)));
        assert_eq!(read(b"a noreply"), Ok((&b"a"[..], true)));
        assert_eq!(read(b"a 0"), Ok((&b"a"[..], false)));
        assert_eq!(read(b"a 0 noreply"), Ok((&b"a"[..], true)));
        assert_eq!(read(b"a 10"), Err(Refusal::BadDelete));
        assert_eq!(read(b"a 0 b"), Err(Refusal::BadDelete));
        assert_eq!(read(b"a 0 noreply b c"), Err(Refusal::Unknown));
        assert_eq!(read(b""), Err(Refusal::Unknown));
    }
}
