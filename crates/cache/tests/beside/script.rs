//! Random commands, sensible and nearly so, from a seed.

use rand::{RngExt, rngs::SmallRng};

use super::side::UNIQUE;

fn pick<'a>(random: &mut SmallRng, all: &[&'a str]) -> &'a str {
    all[random.random_range(0..all.len())]
}

const KEYS: &[&str] = &["a", "b", "c", "counter", "other:key", "k-of-some-length"];

fn value(random: &mut SmallRng) -> String {
    match random.random_range(0..8) {
        0 => String::new(),
        1 => "1844674407370955161".to_owned(),
        2 => "words and\r\nlines".to_owned(),
        3 => "x".repeat(random.random_range(1..3000)),
        4 => "12 and more".to_owned(),
        _ => random.random_range(0..2000_u32).to_string(),
    }
}

fn noreply(random: &mut SmallRng) -> &'static str {
    pick(random, &["", "", "", "", " noreply"])
}

/// One command with its data.
pub(crate) fn command(random: &mut SmallRng) -> String {
    match random.random_range(0..20) {
        0..5 => store(random),
        5..8 => read(random),
        8 => {
            let delta = pick(random, &["1", "7", "99999", "1099511627776", "x", "-1"]);
            let name = pick(random, &["incr", "decr"]);
            format!("{name} {} {delta}{}\r\n", pick(random, KEYS), noreply(random))
        }
        9 => {
            let exptime = pick(random, &["0", "1000", "-1", "x"]);
            format!("touch {} {exptime}{}\r\n", pick(random, KEYS), noreply(random))
        }
        10 => {
            let rest = pick(random, &["", "", "", " 0", " noreply", " 0 noreply", " 7", " a b"]);
            format!("delete {}{rest}\r\n", pick(random, KEYS))
        }
        11 => odd(random),
        12..15 => meta_get(random),
        15..17 => meta_set(random),
        17 => meta_delete(random),
        _ => meta_sum(random),
    }
}

fn store(random: &mut SmallRng) -> String {
    let name = pick(random, &["set", "set", "set", "add", "replace", "append", "prepend", "cas"]);
    let key = pick(random, KEYS);
    let value = value(random);
    let flags = pick(random, &["0", "0", "5", "4294967295", "x"]);
    let exptime = pick(random, &["0", "0", "0", "1000", "-1", "2592001"]);
    let unique = match name {
        "cas" => pick(random, &[" 1", " 0", " <cas>", " <cas>"]).replace("<cas>", &own(key)),
        _ => String::new(),
    };
    let quiet = noreply(random);
    let line = format!("{name} {key} {flags} {exptime} {}{unique}{quiet}\r\n", value.len());
    // A refused line's data would be taken for commands.
    if flags == "x" { line } else { format!("{line}{value}\r\n") }
}

fn own(key: &str) -> String {
    format!("{UNIQUE}{key}>")
}

fn read(random: &mut SmallRng) -> String {
    let name = pick(random, &["get", "get", "gets", "gets", "gat 1000", "gats 0", "gat x", "gat"]);
    let keys: Vec<_> = (0..random.random_range(0..4)).map(|_| pick(random, KEYS)).collect();
    format!("{name} {}\r\n", keys.join(" "))
}

/// Commands about the service, and what is none.
fn odd(random: &mut SmallRng) -> String {
    let line = pick(
        random,
        &[
            "flush_all",
            "flush_all noreply",
            "flush_all x",
            "flush_all -1",
            "flush_all 0",
            "flush_all 1 2 3 4",
            "verbosity 1",
            "verbosity",
            "verbosity x",
            "verbosity 0 noreply",
            "mn",
            "bogus",
            "",
            " ",
            "set a 0 0",
            "set a 0 0 x",
            "incr a",
            "mg",
            "ms",
            "ms a",
            "ms a x",
            "md",
            "ma",
            "me",
            "me missing",
            "mz a",
            "shutdown",
            "refresh_certs",
            "stats bogus",
            "stats detail",
            "stats detail off",
            "stats sizes",
            "stats reset",
            "stats cachedump",
            "stats cachedump x 1",
            "stats cachedump 99 1",
            "lru_crawler",
            "lru_crawler sleep x",
            "lru_crawler sleep 2000000",
            "lru_crawler sleep 100",
            "lru_crawler tocrawl 0",
            "lru mode flat",
            "lru tune 10 25 0.1 2.0",
            "lru tune 50 50 0.1 2.0",
            "lru tune 10 25 0 2.0",
            "lru temp_ttl 60",
            "lru bogus",
            "slabs automove 0",
            "slabs automove 1",
            "slabs automove 7",
            "slabs bogus",
            "cache_memlimit 4",
            "cache_memlimit x",
            "cache_memlimit 65",
        ],
    );
    format!("{line}\r\n")
}

/// Some of `all`, each once, in random order.
fn flags(random: &mut SmallRng, all: &[&str], most: usize) -> String {
    let mut left = all.to_vec();
    let mut chosen = String::new();
    for _ in 0..random.random_range(0..=most) {
        if left.is_empty() {
            break;
        }
        let at = random.random_range(0..left.len());
        chosen += " ";
        chosen += left.remove(at);
    }
    chosen
}

/// A key, and the flag that it needs.
fn meta_key(random: &mut SmallRng) -> (&'static str, &'static str) {
    match random.random_range(0..10) {
        0 => ("YWJj", " b"),
        1 => ("AP8B", " b"),
        2 => ("abc", " b"),
        _ => (pick(random, KEYS), ""),
    }
}

fn meta_get(random: &mut SmallRng) -> String {
    let (key, binary) = meta_key(random);
    let all = ["v", "c", "f", "h", "k", "l", "s", "t", "q", "u", "Oabc", "T1000", "T0", "R30"];
    let mut chosen = flags(random, &all, 8);
    // Both would be the same flag twice.
    if chosen.contains("T1000") {
        chosen = chosen.replace(" T0", "");
    }
    // A new item's key is shown in base64 here, and as it is there.
    if random.random_range(0..4) == 0 && binary.is_empty() && !chosen.contains(" T") {
        chosen += " N1000";
    }
    let odd = pick(random, &["", "", "", "", "", "", "", "", " v v", " !", " Tx", " Nx", " MAB"]);
    format!("mg {key}{binary}{chosen}{odd}\r\n")
}

fn meta_set(random: &mut SmallRng) -> String {
    let (key, binary) = meta_key(random);
    let value = value(random);
    let all = ["c", "k", "Oxyz", "q", "F5", "T1000", "I"];
    let mut chosen = flags(random, &all, 5);
    let modes = ["", "", "", " ME", " MR", " MS", " Mx", " MA", " MP"];
    chosen += pick(random, if binary.is_empty() { &modes } else { &modes[..7] });
    match random.random_range(0..8) {
        0 => chosen += " C1",
        1..3 if binary.is_empty() => chosen += &format!(" C{}", own(key)),
        _ => {}
    }
    format!("ms {key} {}{binary}{chosen}\r\n{value}\r\n", value.len())
}

fn meta_delete(random: &mut SmallRng) -> String {
    let (key, binary) = meta_key(random);
    let mut chosen = flags(random, &["k", "Oabc", "q", "I", "I", "T1000"], 4);
    if random.random_range(0..4) == 0 && binary.is_empty() {
        chosen += &format!(" C{}", own(key));
    }
    format!("md {key}{binary}{chosen}\r\n")
}

fn meta_sum(random: &mut SmallRng) -> String {
    let key = pick(random, &["counter", "counter", "a", "new-counter"]);
    let all = ["v", "t", "c", "k", "Oabc", "q", "D5", "J100"];
    let mut chosen = flags(random, &all, 6);
    chosen += pick(random, &["", "", " MI", " MD", " M+", " M-", " Mx", " Dx"]);
    chosen += pick(random, &["", " N0", " N1000"]);
    if random.random_range(0..6) == 0 {
        chosen += &format!(" C{}", own(key));
    }
    format!("ma {key}{chosen}\r\n")
}
