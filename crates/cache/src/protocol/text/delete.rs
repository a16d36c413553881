//! `delete`: removes one key.

use super::words::Words;
use super::{Command, Row};
use crate::protocol::Refusal;

/// `delete`.
pub(super) static DELETE: Row =
    Row { name: "delete", usage: "delete KEY [noreply]", doc: "Removes a key.", read };

fn read(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let key = words.key()?;
    let rest = [words.next(), words.next(), words.next()];
    // Old clients send a time of 0, which is all that was ever allowed there.
    let noreply = match rest {
        [None, ..] | [Some(b"0"), None, _] => false,
        [Some(b"noreply"), None, _] | [Some(b"0"), Some(b"noreply"), None] => true,
        _ => return Err(Refusal::BadDelete),
    };
    Ok(Command::Delete { key, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_old_clients_is_allowed_when_it_is_zero() {
        let read = |line| match read(Words::new(line)) {
            Ok(Command::Delete { key, noreply }) => Ok((key, noreply)),
            Ok(_) => unreachable!("a delete"),
            Err(refusal) => Err(refusal),
        };
        assert_eq!(read(b"a"), Ok((&b"a"[..], false)));
        assert_eq!(read(b"a noreply"), Ok((&b"a"[..], true)));
        assert_eq!(read(b"a 0"), Ok((&b"a"[..], false)));
        assert_eq!(read(b"a 0 noreply"), Ok((&b"a"[..], true)));
        assert_eq!(read(b"a 10"), Err(Refusal::BadDelete));
        assert_eq!(read(b"a 0 noreply b"), Err(Refusal::BadDelete));
        assert_eq!(read(b""), Err(Refusal::Unknown));
    }
}
