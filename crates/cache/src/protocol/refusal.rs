//! Answers that refuse a request.

/// An answer that refuses a request. The connection goes on, but for
/// [`Refusal::LongLine`] and [`Refusal::Foreign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub enum Refusal {
    /// No such command, or a wrong number of tokens.
    Unknown,
    /// The line is of another protocol; there is no answer.
    Foreign,
    /// A token of the line is invalid.
    BadLine,
    /// `delete` with invalid tokens.
    BadDelete,
    /// The line is longer than [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES).
    LongLine,
    /// A data block does not end where its line said.
    BadChunk,
    /// A meta command's flag is given twice.
    DuplicateFlag,
    /// A meta command has no such flag.
    InvalidFlag,
    /// A meta command's flag is given twice, or there is no such flag.
    WrongFlag,
    /// A meta get has more flags than the limit.
    ManyFlags,
    /// Another meta command has more flags than the limit.
    ManyChangeFlags,
    /// A meta command's opaque token is too long.
    LongOpaque,
    /// A meta command's key is not base64.
    BadBase64,
    /// The token of a meta command's flag is invalid.
    BadToken,
    /// A meta command's mode is not one letter.
    LongMode,
    /// A meta store has no such mode.
    StoreMode,
    /// A meta arithmetic command has no such mode.
    SumMode,
    /// The initial value of a meta arithmetic command is no number.
    BadInitial,
    /// The delta of a meta arithmetic command is no number.
    BadMetaDelta,
    /// The delta of `incr` or `decr` is no number.
    BadDelta,
    /// An expiry is no number.
    BadExpiry,
    /// `incr` or `decr` of a value that is no number.
    NotANumber,
    /// `stats cachedump` with invalid tokens.
    BadStats,
    /// `stats detail` with invalid tokens.
    BadDetail,
    /// There is no such class of items.
    NoClass,
    /// The value is too large to be stored.
    TooLarge,
    /// There is no memory for the value, and nothing may be evicted.
    OutOfMemory,
    /// There is no memory for a number, and nothing may be evicted.
    OutOfMemoryForNumber,
    /// `flush_all` is disabled.
    NoFlush,
    /// `shutdown` is disabled.
    NoShutdown,
    /// `shutdown` has no such mode.
    BadShutdown,
    /// `watch` is disabled.
    NoWatch,
    /// The limit of watchers is reached.
    ManyWatchers,
    /// `lru_crawler metadump` and `mgdump` are disabled.
    NoDump,
    /// `stats cachedump` and `stats hotkeys` are disabled.
    NoCacheDump,
    /// The crawler is disabled.
    NoCrawler,
    /// A requested walk of the crawler has not ended.
    CrawlerBusy,
    /// The crawler's sleep is above the limit.
    LongSleep,
    /// The memory limit is too small.
    LittleMemory,
    /// The memory limit is too large to be in megabytes.
    ManyMegabytes,
    /// The memory limit can't be set.
    BadMemory,
    /// The percentages of the LRU's segments are too large.
    LargeParts,
    /// The age factors of the LRU's segments are not above 0.
    SmallFactors,
    /// There is no such class to list.
    NoClasses,
    /// There are no slab classes to move memory between.
    BadClass,
    /// The connection has not authenticated.
    Unauthenticated,
    /// The credentials do not end where their line said.
    BadTokenEnd,
    /// The credentials are not two tokens.
    BadTokenForm,
    /// The credentials are wrong.
    WrongPassword,
}

impl Refusal {
    /// Returns the line that is sent, without its end.
    pub fn text(self) -> &'static str {
        let line = std::str::from_utf8(self.line()).unwrap_or_default();
        line.trim_end_matches("\r\n")
    }

    /// Returns the line that is sent, with its end.
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
            Self::OutOfMemory => b"SERVER_ERROR out of memory storing object\r\n",
            Self::OutOfMemoryForNumber => b"SERVER_ERROR out of memory\r\n",
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
            Self::NoCrawler => b"CLIENT_ERROR lru crawler disabled\r\n",
            Self::CrawlerBusy => b"BUSY currently processing crawler request\r\n",
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
