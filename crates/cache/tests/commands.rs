//! What the commands do that `beside` can't ask of a memcached: limits, switches, lists.

use crate::common::{SECOND_NS, Session, service};
use cache::server::{Accounts, Options, Shutdown, Speech};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[test]
fn a_flush_with_a_delay_takes_what_is_there_by_then() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\nx\r\n");
    assert_eq!(session.say("flush_all 10\r\n"), "OK\r\n");
    assert!(session.say("get a\r\n").starts_with("VALUE"));
    session.now_ns = 9 * SECOND_NS;
    session.say("set b 0 0 1\r\nx\r\n");
    assert!(session.say("get a b\r\n").contains("VALUE b"));
    session.now_ns = 10 * SECOND_NS;
    assert_eq!(session.say("get a b\r\n"), "END\r\n");
    session.say("set a 0 0 1\r\nx\r\n");
    assert!(session.say("get a\r\n").starts_with("VALUE"));
}

#[test]
fn an_expiry_can_be_put_off_and_taken_away() {
    let mut session = Session::new();
    session.say("set a 0 10 1\r\nx\r\nset b 5 0 1\r\ny\r\n");
    assert_eq!(session.say("touch a 100\r\ntouch b 20\r\ntouch c 1\r\n"), {
        "TOUCHED\r\nTOUCHED\r\nNOT_FOUND\r\n"
    });
    session.now_ns = 15 * SECOND_NS;
    assert_eq!(session.say("gat 0 a b\r\n"), { "VALUE a 0 1\r\nx\r\nVALUE b 5 1\r\ny\r\nEND\r\n" });
    session.now_ns = 1000 * SECOND_NS;
    assert_eq!(session.say("get a b\r\n"), "VALUE a 0 1\r\nx\r\nVALUE b 5 1\r\ny\r\nEND\r\n");
}

#[test]
fn without_eviction_new_items_are_refused_and_old_ones_stay() {
    let options = Options { memory_bytes: 2 << 20, item_bytes: 1 << 17, ..Options::default() };
    let mut session = Session::with(Options { evict: false, ..options });
    let mut stored = 0;
    let value = "v".repeat(1000);
    for number in 0..4000 {
        match session.say(format!("set key-{number} 0 0 1000\r\n{value}\r\n")).as_str() {
            "STORED\r\n" => stored += 1,
            refused => assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n"),
        }
    }
    assert!((1200..2100).contains(&stored), "{stored}");
    let found =
        (0..4000).filter(|number| session.say(format!("get key-{number}\r\n")).len() > 5).count();
    assert_eq!(found, stored);
    assert!(session.say("stats\r\n").contains("STAT evictions 0\r\n"));
    assert_eq!(session.say("delete key-0\r\n"), "DELETED\r\n");
    assert!(session.say("stats\r\n").contains(&format!("STAT curr_items {}\r\n", stored - 1)));
}

#[test]
fn without_unique_numbers_they_are_zero_and_never_match() {
    let mut session = Session::with(Options { cas: false, ..Options::default() });
    session.say("set a 0 0 1\r\nx\r\n");
    assert_eq!(session.say("gets a\r\n"), "VALUE a 0 1 0\r\nx\r\nEND\r\n");
    assert_eq!(session.say("cas a 0 0 1 0\r\ny\r\n"), "EXISTS\r\n");
}

#[test]
fn a_stranger_has_to_say_who_it_is() {
    let accounts = Some(Accounts::read(b"me:secret\n").expect("accounts"));
    let mut session = Session::with(Options { accounts, ..Options::default() });
    let refused = "CLIENT_ERROR unauthenticated\r\n";
    for line in ["get a", "version", "mg a v", "bogus", "stats"] {
        assert_eq!(session.say(format!("{line}\r\n")), refused, "{line}");
    }
    assert_eq!(session.say("set x 0 0 8\r\nme wrong\r\n"), {
        "CLIENT_ERROR authentication failure\r\n"
    });
    assert_eq!(session.say("set x 0 0 2\r\nme\r\n"), {
        "CLIENT_ERROR bad authentication token format\r\n"
    });
    let long = format!("set x 0 0 5000\r\n{}\r\n", "y".repeat(5000));
    assert_eq!(session.say(long), "CLIENT_ERROR authentication failure\r\n");
    assert_eq!(session.say("set x 0 0 9\r\nme secret\r\n"), "STORED\r\n");
    assert_eq!(session.say("get x\r\n"), "END\r\n");
}

#[test]
fn what_is_switched_off_is_refused() {
    let options = Options { flush: false, watch: false, list_keys: false, ..Options::default() };
    let mut session = Session::with(options);
    assert_eq!(session.say("flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
    assert_eq!(session.say("lru_crawler metadump all\r\n"), "ERROR metadump not allowed\r\n");
    let refused = "CLIENT_ERROR stats cachedump not allowed\r\n";
    assert_eq!(session.say("stats cachedump 1 10\r\n"), refused);
    assert_eq!(session.say("shutdown\r\n"), "ERROR: shutdown not enabled\r\n");
    assert_eq!(session.say("watch fetchers\r\n"), "CLIENT_ERROR watch commands not allowed\r\n");
}

#[test]
fn a_shutdown_that_is_allowed_is_carried_out() {
    let ended = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ended);
    let end = Shutdown::new(move || {
        count.fetch_add(1, SeqCst);
    });
    let mut session = Session::with(Options { shutdown: Some(end), ..Options::default() });
    assert_eq!(session.say("shutdown soon\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
    assert_eq!(session.say("shutdown graceful\r\n"), "");
    assert_eq!((ended.load(SeqCst), session.ended.is_some()), (1, true));
}

#[test]
fn a_list_names_every_key_once_and_pauses_while_the_output_is_full() {
    let mut session = Session::new();
    for number in 0..5000 {
        session.say(format!("set key-{number} 0 0 1\r\nx\r\n"));
    }
    session.out = wire::Output::new(1000);
    session.hear(b"lru_crawler mgdump all\r\nversion\r\n");
    let (mut list, mut turns) = (String::new(), 0);
    while !session.out.is_empty() {
        assert!(session.out.len() < 6000, "{}", session.out.len());
        list += &String::from_utf8_lossy(&session.out.take());
        session.hear(b"");
        turns += 1;
    }
    assert!(turns > 20, "{turns}");
    let mut keys: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("mg ")).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 5000);
    assert!(list.ends_with(&format!("EN\r\nVERSION {}\r\n", cache::VERSION)));
    session.out = wire::Output::new(1 << 30);
    let facts = session.say("lru_crawler metadump all\r\n");
    assert_eq!(facts.matches("key=key%2D").count() + facts.matches("key=key-").count(), 5000);
    assert!(facts.ends_with("END\r\n"));
    let dump = session.say("stats cachedump 1 10\r\n");
    assert_eq!(dump.matches("ITEM key-").count(), 10);
    session.say("stats sizes_enable\r\n");
    assert!(session.say("stats sizes\r\n").contains("STAT 32 5000\r\n"));
}

#[test]
fn memory_can_be_changed_while_it_is_in_use() {
    let options = Options { memory_bytes: 16 << 20, item_bytes: 1 << 19, ..Options::default() };
    let mut session = Session::with(options);
    let value = "v".repeat(1000);
    let fill = |session: &mut Session| {
        for number in 0..40_000 {
            session.say(format!("set key-{number} 0 0 1000 noreply\r\n{value}\r\n"));
        }
        let stats = session.say("stats\r\n");
        let line = stats.lines().find_map(|line| line.strip_prefix("STAT curr_items "));
        line.and_then(|count| count.parse::<u32>().ok()).expect("a count")
    };
    let before = fill(&mut session);
    assert_eq!(session.say("cache_memlimit 32\r\n"), "OK\r\n");
    let more = fill(&mut session);
    assert_eq!(session.say("cache_memlimit 8\r\n"), "OK\r\n");
    let less = fill(&mut session);
    assert!(more > before * 18 / 10 && less < before * 6 / 10, "{less} {before} {more}");
    assert!(session.say("stats\r\n").contains("STAT limit_maxbytes 8388608\r\n"));
}

#[test]
fn newer_flags_are_understood() {
    let mut session = Session::new();
    assert_eq!(session.say("ms a 1 E123 c\r\nx\r\n"), "HD c123\r\n");
    assert_eq!(session.say("md a I E50 T30\r\nmg a c t v\r\n"), "HD\r\nVA 1 c50 t30 X W\r\nx\r\n");
    assert_eq!(session.say("mg a\r\n"), "HD Z X\r\n");
    assert_eq!(session.say("md a x\r\nmg a v f s\r\n"), "HD\r\nVA 0 f0 s0 Z X\r\n\r\n");
    assert_eq!(session.say("ms new 1 MA N30\r\nx\r\nmg new t v\r\n"), "HD\r\nVA 1 t30\r\nx\r\n");
    assert_eq!(session.say("ma n N0 J7 E9 c v\r\n"), "VA 1 c9\r\n7\r\n");
}

#[test]
fn one_protocol_can_be_demanded() {
    let noop = [&[0x80, 0x0a][..], &[0; 22]].concat();
    let mut session = Session::with(Options { speech: Speech::Text, ..Options::default() });
    session.hear(&[&noop[..], b"\r\n"].concat());
    assert!(session.out.take().starts_with(b"ERROR\r\n"));
    let mut session = Session::with(Options { speech: Speech::Binary, ..Options::default() });
    session.hear(&noop);
    assert_eq!(session.out.take()[..2], [0x81, 0x0a]);
    session.hear(b"get a\r\n and so many bytes more");
    assert!(matches!(session.ended, Some(Err(_))));
}

#[test]
fn prefixes_are_counted_once_somebody_asks() {
    let mut session = Session::new();
    session.say("set a:1 0 0 1\r\nx\r\n");
    assert_eq!(session.say("stats detail on\r\n"), "OK\r\n");
    session.say("set a:1 0 0 1\r\nx\r\nget a:1 a:2\r\ndelete a:1\r\nget plain\r\n");
    let expected = "PREFIX a get 2 hit 1 set 1 del 1\r\nEND\r\n";
    assert_eq!(session.say("stats detail dump\r\n"), expected);
}

const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object\r\n";

#[test]
fn blocks_that_never_come_keep_no_more_memory_than_they_may() {
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    let service = service(options);
    let mut other = Session::of(&service);
    other.say("set key 0 0 3\r\nold\r\nset more 0 0 1\r\na\r\n");
    // A quarter of the memory: four blocks of a million bytes.
    let mut begun: Vec<_> = (0..4).map(|_| Session::of(&service)).collect();
    begun.iter_mut().for_each(|begun| assert_eq!(begun.say("set big 0 0 1000000\r\n"), ""));
    let large = "v".repeat(1_000_000);
    assert_eq!(other.say("set key 0 0 1000000\r\n"), NO_MEMORY);
    assert_eq!(other.say(format!("{large}\r\nget key\r\n")), "END\r\n", "the old value is gone");
    let append = format!("append more 0 0 1000000\r\n{large}\r\nmg more v\r\n");
    assert_eq!(other.say(&append[..30]), NO_MEMORY);
    assert_eq!(other.say(&append[30..]), "VA 1\r\na\r\n", "what would be appended to stays");
    assert_eq!(other.say("set key 0 0 1000000 noreply\r\n"), "");
    assert_eq!(other.say(format!("{large}\r\nms key 1000000\r\n")), NO_MEMORY);
    assert_eq!(other.say(format!("{large}\r\nmn\r\n")), "MN\r\n");
    let small = format!("set small 0 0 4000\r\n{}\r\n", "s".repeat(4000));
    assert_eq!(other.say(&small[..900]) + &other.say(&small[900..]), "STORED\r\n");
    let stats = other.say("stats\r\n");
    assert!(stats.contains("STAT read_buf_oom 4\r\n"), "{stats}");
    assert!(stats.contains("STAT store_no_memory 4\r\n"), "{stats}");
    assert_eq!(begun[0].say(format!("{large}\r\n")), "STORED\r\n", "what has begun is finished");
    assert_eq!(other.say("set key 0 0 1000000\r\n"), "");
    begun.pop();
    assert_eq!(begun[0].say("set key 0 0 1000000\r\n"), "", "who goes makes room");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Clients that announce blocks, send some of them, and stay or go.
    #[test]
    fn every_block_has_its_answer_and_all_of_them_their_bound(
        steps in prop::collection::vec(
            (0_usize..6, 17_000_usize..110_000, 0_usize..120_000), 1..60),
    ) {
        const LIMIT: usize = 256 << 10;
        let options = Options { memory_bytes: 1 << 20, item_bytes: 1 << 17, ..Options::default() };
        let service = service(options);
        // Each client, the data that it still owes, and how much room is kept for them.
        let client = || (Session::of(&service), Vec::new(), 0);
        let mut clients: Vec<_> = (0..6).map(|_| client()).collect();
        for (who, bytes, sent) in steps {
            let claimed: usize = clients.iter().map(|(_, _, kept)| kept).sum();
            let (session, owed, kept) = &mut clients[who];
            if owed.is_empty() {
                let fits = claimed + bytes + 2 <= LIMIT;
                let said = session.say(format!("set key 0 0 {bytes}\r\n"));
                prop_assert_eq!(said, if fits { "" } else { NO_MEMORY });
                owed.resize(bytes, b'x');
                owed.extend_from_slice(b"\r\n");
                *kept = if fits { owed.len() } else { 0 };
            } else if sent < 10_000 {
                clients[who] = client();
            } else {
                let said = session.say(owed.drain(..sent.min(owed.len())).collect::<Vec<_>>());
                let is_stored = owed.is_empty() && *kept > 0;
                prop_assert_eq!(said, if is_stored { "STORED\r\n" } else { "" });
                *kept = if owed.is_empty() { 0 } else { *kept };
            }
            let claimed: usize = clients.iter().map(|(_, _, kept)| kept).sum();
            let free = format!("STAT read_buf_bytes_free {}\r\n", LIMIT - claimed);
            prop_assert!(Session::of(&service).say("stats\r\n").contains(&free));
        }
    }
}
