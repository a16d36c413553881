//! Commands about memcached's own threads and classes. The crawler has its counterpart here; there
//! are no classes: what only tunes them is understood and changes nothing.

use super::tokens::{Tokens, noreply, number, signed};
use super::{Command, Row};
use crate::protocol::Refusal;

/// How items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// `metadump`: one line of metadata for each item.
    Metadump,
    /// `mgdump`: one meta get for each item.
    Mgdump,
}

/// A command to the crawler, which removes expired items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlerCommand {
    /// `enable` or `disable`.
    Enable(bool),
    /// `sleep`: the microseconds between two turns.
    Sleep(u32),
    /// `tocrawl`: the items that one walk examines at most; 0 is all.
    ToCrawl(u32),
    /// `crawl`: a walk through everything, now.
    Crawl,
}

/// `lru_crawler`.
pub(super) static LRU_CRAWLER: Row = Row {
    name: "lru_crawler",
    usage: "lru_crawler metadump|mgdump|crawl CLASSES, lru_crawler enable|disable, lru_crawler \
            sleep MICROSECONDS, lru_crawler tocrawl ITEMS",
    doc: "Lists all items, or has the crawler, which removes expired items, walk now or otherwise.",
    may_be_quiet: false,
    read: read_crawler,
};

/// `lru`.
pub(super) static LRU: Row = Row {
    name: "lru",
    usage: "lru tune HOT WARM FACTOR FACTOR, lru mode flat|segmented, lru temp_ttl SECONDS",
    doc: "Is understood and changes nothing.",
    may_be_quiet: true,
    read: read_lru,
};

/// `slabs`.
pub(super) static SLABS: Row = Row {
    name: "slabs",
    usage: "slabs reassign FROM TO, slabs automove 0|1|2",
    doc: "Is understood and changes nothing: there are no classes to move memory between.",
    may_be_quiet: true,
    read: read_slabs,
};

/// The longest time between two turns of a walk.
pub const MAX_SLEEP_US: u32 = 1_000_000;

/// Checks that `token` names classes as memcached's crawler takes them; all items are of class 1.
fn classes(token: &[u8]) -> Result<(), Refusal> {
    let is_class = |class: &[u8]| number(class, 63).is_some_and(|class| class > 0);
    match token {
        b"all" | b"hash" => Ok(()),
        list if list.split(|byte| *byte == b',').all(is_class) => Ok(()),
        _ => Err(Refusal::NoClasses),
    }
}

fn read_crawler(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([name, argument], count) = tokens.gather(1)?;
    let command = match (name, count) {
        (b"enable", 1) => CrawlerCommand::Enable(true),
        (b"disable", 1) => CrawlerCommand::Enable(false),
        (b"crawl", 2) => classes(argument).map(|()| CrawlerCommand::Crawl)?,
        (b"tocrawl", 2) => CrawlerCommand::ToCrawl(integer(argument)?),
        (b"sleep", 2) => match integer(argument)? {
            sleep_us if sleep_us > MAX_SLEEP_US => return Err(Refusal::LongSleep),
            sleep_us => CrawlerCommand::Sleep(sleep_us),
        },
        (b"metadump", 2) => return classes(argument).and(Ok(Command::List(Listing::Metadump))),
        (b"mgdump", 2) => return classes(argument).and(Ok(Command::List(Listing::Mgdump))),
        _ => return Err(Refusal::Unknown),
    };
    Ok(Command::Crawler(command))
}

/// A number of 32 bits.
fn integer(token: &[u8]) -> Result<u32, Refusal> {
    let number = number(token, u64::from(u32::MAX)).ok_or(Refusal::BadLine)?;
    u32::try_from(number).map_err(|_| Refusal::BadLine)
}

fn read_lru(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([name, first, second, third, fourth, last], count) = tokens.gather(2)?;
    let decimal = |token: &[u8]| std::str::from_utf8(token).ok()?.parse::<f64>().ok();
    match name {
        b"tune" if count >= 5 => {
            let percent = |token| number(token, u64::from(u32::MAX)).ok_or(Refusal::Unknown);
            let factor = |token| decimal(token).ok_or(Refusal::Unknown);
            let (hot, warm) = (percent(first)?, percent(second)?);
            let (hot_factor, warm_factor) = (factor(third)?, factor(fourth)?);
            if hot + warm > 80 {
                return Err(Refusal::LargeParts);
            }
            if hot_factor <= 0.0 || warm_factor <= 0.0 {
                return Err(Refusal::SmallFactors);
            }
            Ok(Command::Ignored { noreply: noreply(last) })
        }
        b"mode" if matches!(first, b"flat" | b"segmented") => {
            Ok(Command::Ignored { noreply: noreply(second) })
        }
        b"temp_ttl" if signed(first).is_some() => Ok(Command::Ignored { noreply: noreply(second) }),
        _ => Err(Refusal::Unknown),
    }
}

fn read_slabs(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([name, first, second, last], count) = tokens.gather(2)?;
    match (name, count) {
        (b"reassign", 3) => {
            signed(first).and(signed(second)).ok_or(Refusal::BadLine)?;
            Err(Refusal::BadClass)
        }
        (b"automove", _) if first == b"ratio" => match std::str::from_utf8(second) {
            Ok(ratio) if ratio.parse::<f64>().is_ok() => {
                Ok(Command::Ignored { noreply: noreply(last) })
            }
            _ => Err(Refusal::Unknown),
        },
        (b"automove", _) => match number(first, u64::from(u32::MAX)) {
            None => Err(Refusal::BadLine),
            Some(0..3) => Ok(Command::Ignored { noreply: noreply(second) }),
            Some(_) => Err(Refusal::Unknown),
        },
        _ => Err(Refusal::Unknown),
    }
}
