//! The accounts of clients that have to authenticate.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Names and their passwords. Copies share them: what one is renewed with, all have.
#[derive(Clone, Default)]
pub struct Accounts(Arc<RwLock<BTreeMap<Vec<u8>, Vec<u8>>>>);

/// A file of accounts that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountsError {
    /// It holds too many.
    #[error("more than {MAX_ACCOUNTS} accounts")]
    TooMany,
    /// A line is not `name:password`.
    #[error("line {0} is not NAME:PASSWORD, each of 1 to 256 bytes")]
    BadLine(usize),
    /// It holds none.
    #[error("there is no account in it")]
    Empty,
}

/// The number of accounts at most.
const MAX_ACCOUNTS: usize = 64;

/// The length of a name or password at most.
const MAX_BYTES: usize = 256;

impl Accounts {
    /// Reads lines of `name:password`.
    ///
    /// # Errors
    /// When a line is something else, or there are none, or too many.
    pub fn read(text: &[u8]) -> Result<Self, AccountsError> {
        let mut all = BTreeMap::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let bad = AccountsError::BadLine(number + 1);
            let colon = line.iter().position(|byte| *byte == b':').ok_or(bad.clone())?;
            let (name, password) = (&line[..colon], &line[colon + 1..]);
            if [name, password].iter().any(|part| part.is_empty() || part.len() > MAX_BYTES) {
                return Err(bad);
            }
            all.insert(name.to_vec(), password.to_vec());
        }
        match all.len() {
            0 => Err(AccountsError::Empty),
            count if count > MAX_ACCOUNTS => Err(AccountsError::TooMany),
            _ => Ok(Self(Arc::new(RwLock::new(all)))),
        }
    }

    /// Takes the place of what was there, for those who sign in from then on.
    pub fn renew(&self, renewed: Self) {
        let renewed =
            std::mem::take(&mut *renewed.0.write().unwrap_or_else(PoisonError::into_inner));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = renewed;
    }

    /// Whether `password` is that of `name`. The time depends neither on how much of the password
    /// is right nor on whether the name is known: an unknown one is compared with a dummy.
    pub(super) fn has(&self, name: &[u8], password: &[u8]) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(name);
        let right = known.map_or(&[0; MAX_BYTES][..], Vec::as_slice);
        // Over the whole given password, whatever the length of the right one.
        let padded = right.iter().chain(std::iter::repeat(&0));
        let differs = padded.zip(password).fold(0, |sum, (one, other)| sum | (one ^ other));
        let is_right = std::hint::black_box(differs) == 0 && right.len() == password.len();
        is_right && known.is_some()
    }
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "Accounts({count})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_lines_of_names_and_passwords() {
        let all = Accounts::read(b"one:two:three\r\n\nfoo:bar\n").unwrap();
        assert!(all.has(b"one", b"two:three") && all.has(b"foo", b"bar"));
        assert!(!all.has(b"foo", b"ba") && !all.has(b"foo", b"baz") && !all.has(b"", b""));
        let dummy = [0; MAX_BYTES];
        assert!(!all.has(b"nobody", &dummy) && !all.has(b"nobody", b""));
        assert_eq!(Accounts::read(b"\n").unwrap_err(), AccountsError::Empty);
        assert_eq!(Accounts::read(b"a:b\nfoo\n").unwrap_err(), AccountsError::BadLine(2));
    }
}
