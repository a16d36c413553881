//! `flush_all`: forgets everything, now or later.

use super::tokens::{Tokens, noreply, signed};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `flush_all`.
pub(super) static FLUSH_ALL: Row = Row {
    name: "flush_all",
    usage: "flush_all [DELAY] [noreply]",
    doc: "Removes all items that are stored up to now, or up to a number of seconds from now.",
    may_be_quiet: true,
    read,
};

fn read(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([first, second, third], count) = tokens.gather(0)?;
    let last = [first, second, third][count.saturating_sub(1)];
    let noreply = noreply(last);
    // An invalid delay is only an error where flushing is allowed.
    let delay =
        if count == usize::from(noreply) { Ok(0) } else { signed(first).ok_or(Refusal::BadExpiry) };
    Ok(Command::FlushAll { delay, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_and_the_wish_for_no_answer_are_told_apart() {
        let read = |line| match read(Tokens::new(line)) {
            Ok(Command::FlushAll { delay, noreply }) => Ok((delay, noreply)),
            Ok(_) => unreachable!("a flush"),
            Err(refusal) => Err(refusal),
        };
        assert_eq!(read(b""), Ok((Ok(0), false)));
        assert_eq!(read(b"10"), Ok((Ok(10), false)));
        assert_eq!(read(b"noreply"), Ok((Ok(0), true)));
        assert_eq!(read(b"-1 noreply"), Ok((Ok(-1), true)));
        assert_eq!(read(b"x"), Ok((Err(Refusal::BadExpiry), false)));
        assert_eq!(read(b"1 2 3 4"), Err(Refusal::Unknown));
    }
}
