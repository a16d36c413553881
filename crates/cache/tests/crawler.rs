//! The crawler: expired items leave without a request for them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::server::{Crawler, CrawlerOptions, Options, SLOTS_PER_TURN, Service};
use wire::{Datagrams, Replies, Wake};

use crate::common::{SECOND_NS, Session, service};

/// A service without a loop, whose crawler gets its turns from the test.
struct Crawled {
    service: Arc<Service>,
    session: Session,
    crawler: Crawler,
}

impl Crawled {
    fn new(options: Options) -> Self {
        let service = service(options);
        let (session, crawler) = (Session::of(&service), Crawler::new(Arc::clone(&service)));
        Self { service, session, crawler }
    }

    fn set(&mut self, keys: std::ops::Range<u32>, ttl_s: i32) {
        let command = |key| format!("set key-{key} 0 {ttl_s} 1 noreply\r\nx\r\n");
        self.session.say(keys.map(command).collect::<String>());
    }

    fn items(&self) -> u64 {
        self.service.store().holdings().items
    }

    /// One turn, at the time that the crawler has asked for.
    fn turn(&mut self) {
        let due_ns = self.crawler.deadline().expect("a deadline");
        self.session.now_ns = self.session.now_ns.max(due_ns);
        self.crawler.resume(self.session.now_ns, Wake::Timer, &mut Replies::default());
    }

    /// Turns until the walk is over. Returns how many.
    fn walk(&mut self) -> usize {
        let mut turns = 0;
        loop {
            self.turn();
            turns += 1;
            if number(&self.session.say("stats\r\n"), "lru_crawler_running") == 0 {
                return turns;
            }
            assert!(turns < 100_000, "the walk never ends");
        }
    }

    fn stat(&mut self, name: &str) -> u64 {
        number(&self.session.say("stats\r\n"), name)
    }
}

fn number(stats: &str, name: &str) -> u64 {
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {stats}"))
}

#[test]
fn a_hundred_thousand_expired_items_leave_within_two_seconds_that_nobody_reads() {
    let mut all = Crawled::new(Options::default());
    all.set(0..100_000, 5);
    all.set(100_000..100_500, 0);
    all.set(100_500..101_000, 1000);
    let bytes = all.stat("bytes");
    all.walk();
    assert_eq!((all.items(), all.stat("crawler_items_checked")), (101_000, 0), "nothing is due");
    let expired_ns = 6 * SECOND_NS;
    all.session.now_ns = expired_ns;
    while all.items() > 1000 {
        let before = all.items();
        all.turn();
        assert!(before - all.items() <= SLOTS_PER_TURN as u64, "a turn is bounded");
    }
    let took_ns = all.session.now_ns - expired_ns;
    assert!(took_ns < 2 * SECOND_NS, "{took_ns} ns of the loop's timer");
    all.walk();
    assert_eq!(all.items(), 1000);
    assert!(all.stat("bytes") < bytes / 50);
    assert_eq!((all.stat("crawler_reclaimed"), all.stat("expired_unfetched")), (100_000, 100_000));
    assert_eq!(all.stat("crawler_items_checked"), 101_000, "each exactly once");
    let starts = all.stat("lru_crawler_starts");
    // What is left expires in a quarter of an hour or never: nothing more is visited.
    (0..100).for_each(|_| all.turn());
    assert_eq!(
        (all.stat("crawler_items_checked"), all.stat("lru_crawler_starts")),
        (101_000, starts)
    );
    assert_eq!(all.session.say("mg key-100000\r\nmg key-100500\r\n"), "HD\r\nHD\r\n");
}

#[test]
fn touched_items_and_those_of_all_shards_are_found_at_their_new_second() {
    let mut all = Crawled::new(Options { threads: 4, ..Options::default() });
    all.set(0..2000, 0);
    for key in 0..1000 {
        all.session.say(format!("touch key-{key} 3\r\n"));
    }
    all.set(2000..2100, -1);
    all.walk();
    assert_eq!(all.items(), 2000, "what is stored as expired is not kept");
    all.session.now_ns = 4 * SECOND_NS;
    all.walk();
    assert_eq!(all.items(), 1000);
}

#[test]
fn commands_start_stop_and_limit_it() {
    let mut all = Crawled::new(Options::default());
    all.set(0..1000, 1);
    all.session.now_ns = 3 * SECOND_NS;
    assert_eq!(all.session.say("lru_crawler disable\r\n"), "OK\r\n");
    all.turn();
    assert_eq!((all.items(), all.crawler.deadline()), (1000, None), "no timer while disabled");
    let disabled = "CLIENT_ERROR lru crawler disabled\r\n";
    for refused in ["crawl all", "metadump all", "mgdump all"] {
        assert_eq!(all.session.say(format!("lru_crawler {refused}\r\n")), disabled);
    }
    let commands = "lru_crawler enable\r\nlru_crawler tocrawl 300\r\nlru_crawler sleep 5000\r\n";
    assert_eq!(all.session.say(commands), "OK\r\n".repeat(3));
    assert_eq!(all.session.say("lru_crawler crawl 1\r\n"), "OK\r\n");
    let busy = "BUSY currently processing crawler request\r\n";
    assert_eq!(all.session.say("lru_crawler crawl 1\r\n"), busy);
    let resume = |all: &mut Crawled| {
        all.crawler.resume(all.session.now_ns, Wake::Posted, &mut Replies::default());
    };
    resume(&mut all);
    assert_eq!(all.crawler.deadline(), Some(all.session.now_ns + 5_000_000), "the set sleep");
    all.walk();
    let left = all.items();
    assert!((1000 - 300 - SLOTS_PER_TURN as u64..=700).contains(&left), "{left}");
    assert_eq!(all.session.say("lru_crawler crawl 1\r\n"), "OK\r\n", "the request has ended");
    let settings = all.session.say("stats settings\r\n");
    assert_eq!(number(&settings, "lru_crawler_tocrawl"), 300);
    assert_eq!(number(&settings, "lru_crawler_sleep"), 5000);
    // Later runs go on where this one has stopped.
    (0..5).for_each(|_| _ = all.walk());
    assert_eq!((all.items(), all.stat("crawler_reclaimed")), (0, 1000));
    let mut off = Crawled::new(Options {
        crawler: CrawlerOptions { enabled: false, ..CrawlerOptions::default() },
        ..Options::default()
    });
    assert!(off.session.say("stats settings\r\n").contains("STAT lru_crawler no\r\n"));
}

/// Asks a server, until `curr_items` is 0.
fn wait_until_empty(address: SocketAddr, name: &str) {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let mut lines = BufReader::new(socket.try_clone().expect("a copy")).lines();
    let mut say = |command: &str, end: &str| {
        socket.write_all(command.as_bytes()).expect("sent");
        let mut answer = String::new();
        loop {
            let line = lines.next().expect("a line").expect("a line");
            answer.push_str(&line);
            answer.push('\n');
            if line.starts_with(end) {
                return answer;
            }
        }
    };
    for key in 0..500 {
        say(&format!("set key-{key} 0 1 1\r\nx\r\n"), "STORED");
    }
    let started = Instant::now();
    while number(&say("stats\r\n", "END"), "curr_items") > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "{name} keeps expired items");
        // A walk may be under way, and the second may not be over.
        say("lru_crawler crawl all\r\n", "");
        std::thread::sleep(Duration::from_millis(50));
    }
    let stats = say("stats\r\n", "END");
    assert_eq!(number(&stats, "bytes"), 0, "{name}");
    assert!(number(&stats, "lru_crawler_starts") > 0, "{name}");
    // An empty store is walked through, too, once the last walk has ended.
    while say("lru_crawler crawl 1,2\r\n", "") != "OK\n" {
        assert!(started.elapsed() < Duration::from_secs(60), "{name} never starts a walk");
    }
}

#[test]
fn crawl_empties_the_store_of_what_has_expired_as_memcached_does() {
    let (_server, address) = super::beside::ours(Options::default());
    wait_until_empty(address, "loadline");
    let Some(peer) = super::beside::memcached() else { return };
    wait_until_empty(peer.address, "memcached");
}
