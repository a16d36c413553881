//! Answers that say what was wrong with a request.

/// An answer that says what was wrong with a request. The connection goes on, but for
/// [`Refusal::LongLine`] and [`Refusal::Foreign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub enum Refusal {
    /// No such command, or not with so many words.
    Unknown,
    /// The line is of another protocol; there is no answer.
    Foreign,
    /// A word of the line is not what it should be.
    BadLine,
    /// `delete` with words that it doesn't have.
    BadDelete,
    /// The line is longer than [`MOST_LINE_BYTES`](super::MOST_LINE_BYTES).
    LongLine,
    /// A data block does not end where its line said.
    BadChunk,
    /// A meta command's flag is given twice.
    DuplicateFlag,
    /// A meta command has no such flag.
    InvalidFlag,
    /// A meta command's flag is given twice, or there is no such flag.
    WrongFlag,
    /// A meta command has more flags than anyone needs.
    ManyFlags,
    /// A meta store, removal or sum has more flags than anyone needs.
    ManyChangeFlags,
    /// A meta command's opaque word is too long.
    LongOpaque,
    /// A meta command's key is not base64.
    BadBase64,
    /// What follows a meta command's flag is not what it should be.
    BadToken,
    /// A meta command's mode is not one letter.
    LongMode,
    /// A meta store has no such mode.
    StoreMode,
    /// A meta sum has no such mode.
    SumMode,
    /// A meta sum's first number is none.
    BadInitial,
    /// A meta sum's step is no number.
    BadMetaDelta,
    /// A step of `incr` or `decr` is no number.
    BadDelta,
    /// An expiry is no number.
    BadExpiry,
    /// The value that was to be counted up or down is no number.
    NotANumber,
    /// `stats` with words that it doesn't have.
    BadStats,
    /// `stats detail` with words that it doesn't have.
    BadDetail,
    /// There is no such class of items.
    NoClass,
    /// The value is too large to be stored.
    TooLarge,
    /// Nothing may be let go for the value.
    NoRoom,
    /// Nothing may be let go for a number.
    NoRoomForNumber,
    /// Emptying the cache is switched off.
    NoFlush,
    /// Ending the service by a command is switched off.
    NoShutdown,
    /// There is no such way of ending the service.
    BadShutdown,
    /// Watching is switched off.
    NoWatch,
    /// There are as many watchers as there may be.
    ManyWatchers,
    /// Listing keys is switched off.
    NoDump,
    /// Listing keys is switched off.
    NoCacheDump,
    /// A crawler may not sleep so long.
    LongSleep,
    /// Memory may not be so little.
    LittleMemory,
    /// Memory is given in megabytes.
    ManyMegabytes,
    /// There is no such memory.
    BadMemory,
    /// The parts of the cache may not be so large.
    LargeParts,
    /// Those factors are greater than 0.
    SmallFactors,
    /// There is no such class to list.
    NoClasses,
    /// There are no slab classes to move memory between.
    BadClass,
    /// The connection is to say who it is first.
    Unauthenticated,
    /// What says who it is does not end where its line said.
    BadTokenEnd,
    /// What says who it is is not two words.
    BadTokenForm,
    /// Nobody of that name has that password.
    WrongPassword,
}

impl Refusal {
    /// The line that says it, without its end.
    pub fn text(self) -> &'static str {
        let line = std::str::from_utf8(self.line()).unwrap_or_default();
        line.trim_end_matches("\r\n")
    }

    /// The line that says it, with its end.
    pub fn line(self) -> &'static [u8] {
        match self {
            Self::Unknown => b"ERROR\r\n",
            Self::Foreign => b"",
            Self::BadLine => b"CLIENT_ERROR bad command line format\r\n",
            Self::BadDelete => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Self::LongLine => b"CLIENT_ERROR line too long\r\n",
            Self::BadChunk => b"CLIENT_ERROR bad data chunk\r\n",
            Self::DuplicateFlag => b"CLIENT_ERROR duplicate flag\r\n",
            Self::InvalidFlag => b"CLIENT_ERROR invalid flag\r\n",
            Self::WrongFlag => b"CLIENT_ERROR invalid or duplicate flag\r\n",
            Self::ManyFlags => b"CLIENT_ERROR options flags are too long\r\n",
            Self::ManyChangeFlags => b"CLIENT_ERROR options flags too long\r\n",
            Self::LongOpaque => b"CLIENT_ERROR opaque token too long\r\n",
            Self::BadBase64 => b"CLIENT_ERROR error decoding key\r\n",
            Self::BadToken => b"CLIENT_ERROR bad token in command line format\r\n",
            Self::LongMode => b"CLIENT_ERROR incorrect length for M token\r\n",
            Self::StoreMode => b"CLIENT_ERROR invalid mode for ms M token\r\n",
            Self::SumMode => b"CLIENT_ERROR invalid mode for ma M token\r\n",
            Self::BadInitial => b"CLIENT_ERROR invalid numeric initial value\r\n",
            Self::BadMetaDelta => b"CLIENT_ERROR invalid numeric delta value\r\n",
            Self::BadDelta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
            Self::BadExpiry => b"CLIENT_ERROR invalid exptime argument\r\n",
            Self::NotANumber => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            Self::BadStats => b"CLIENT_ERROR bad command line\r\n",
            Self::BadDetail => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
            Self::NoClass => b"CLIENT_ERROR Illegal slab id\r\n",
            Self::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
            Self::NoRoom => b"SERVER_ERROR out of memory storing object\r\n",
            Self::NoRoomForNumber => b"SERVER_ERROR out of memory\r\n",
            _ => self.rare_line(),
        }
    }

    /// The lines about the service itself.
    fn rare_line(self) -> &'static [u8] {
        match self {
            Self::NoFlush => b"CLIENT_ERROR flush_all not allowed\r\n",
            Self::NoShutdown => b"ERROR: shutdown not enabled\r\n",
            Self::BadShutdown => b"CLIENT_ERROR invalid shutdown mode\r\n",
            Self::NoWatch => b"CLIENT_ERROR watch commands not allowed\r\n",
            Self::ManyWatchers => b"WATCHER_TOO_MANY log watcher limit reached\r\n",
            Self::NoDump => b"ERROR metadump not allowed\r\n",
            Self::NoCacheDump => b"CLIENT_ERROR stats cachedump not allowed\r\n",
            Self::LongSleep => b"CLIENT_ERROR sleep must be one second or less\r\n",
            Self::LittleMemory => b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
            Self::ManyMegabytes => b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n",
            Self::BadMemory => b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
            Self::LargeParts => b"ERROR hot and warm pcts must not exceed 80\r\n",
            Self::SmallFactors => b"ERROR hot/warm age factors must be greater than 0\r\n",
            Self::NoClasses => b"BADCLASS invalid class id\r\n",
            Self::BadClass => b"BADCLASS invalid src or dst class id\r\n",
            Self::Unauthenticated => b"CLIENT_ERROR unauthenticated\r\n",
            Self::BadTokenEnd => b"CLIENT_ERROR bad command line termination\r\n",
            Self::BadTokenForm => b"CLIENT_ERROR bad authentication token format\r\n",
            Self::WrongPassword => b"CLIENT_ERROR authentication failure\r\n",
            _ => b"ERROR\r\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn what_is_shown_is_the_line() {
        assert_eq!(Refusal::Unknown.to_string(), "ERROR");
        assert_eq!(Refusal::NoFlush.to_string(), "CLIENT_ERROR flush_all not allowed");
    }
}
