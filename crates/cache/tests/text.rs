//! The text protocol as a specification: what is said, and what is answered.

use crate::common::{SECOND_NS, Session, service};
use cache::server::Options;

#[test]
fn a_stored_value_is_read_back_with_its_flags() {
    let mut session = Session::new();
    assert_eq!(session.say("get a\r\n"), "END\r\n");
    assert_eq!(session.say("set a 7 0 5\r\nhello\r\n"), "STORED\r\n");
    assert_eq!(session.say("get a\r\n"), "VALUE a 7 5\r\nhello\r\nEND\r\n");
    assert_eq!(session.say("set a 0 0 0\r\n\r\n"), "STORED\r\n");
    assert_eq!(session.say("get a\r\n"), "VALUE a 0 0\r\n\r\nEND\r\n");
}

#[test]
fn several_keys_are_answered_in_their_order_and_missing_ones_left_out() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\n1\r\nset b 4294967295 0 1\r\n2\r\n");
    let expected =
        "VALUE b 4294967295 1\r\n2\r\nVALUE a 0 1\r\n1\r\nVALUE b 4294967295 1\r\n2\r\nEND\r\n";
    assert_eq!(session.say("get b nothing a b\r\n"), expected);
    assert_eq!(session.say("  get  a   nothing \r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn every_store_has_a_unique_number_of_its_own() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\n");
    let number = |answer: String| -> u64 {
        let line = answer.lines().next().expect("a line").to_owned();
        line.rsplit(' ').next().expect("a word").parse().expect("a number")
    };
    let a = number(session.say("gets a\r\n"));
    assert_eq!(number(session.say("gets a\r\n")), a);
    assert_ne!(number(session.say("gets b\r\n")), a);
    session.say("set a 0 0 1\r\n1\r\n");
    assert_ne!(number(session.say("gets a\r\n")), a);
}

#[test]
fn a_bare_newline_ends_a_line_but_not_a_data_block() {
    let mut session = Session::new();
    assert_eq!(
        session.say("set a 0 0 3\nabc\r\nget a\n"),
        "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n"
    );
    // The three bytes, and two more that are not the end of a block.
    assert_eq!(
        session.say("set a 0 0 3\nabc\nget a\r\n"),
        "CLIENT_ERROR bad data chunk\r\nERROR\r\n"
    );
}

#[test]
fn no_reply_is_given_when_none_is_wanted() {
    let mut session = Session::new();
    assert_eq!(session.say("set a 0 0 1 noreply\r\nx\r\n"), "");
    assert_eq!(session.say("delete a noreply\r\n"), "");
    assert_eq!(session.say("get a\r\n"), "END\r\n");
    let big = format!("set a 0 0 1048577 noreply\r\n{}\r\n", "x".repeat(1_048_577));
    assert_eq!(session.say(big), "");
    assert_eq!(session.say("set a 0 0 1 noreply\r\nxyz\r\n"), "ERROR\r\n");
}

#[test]
fn deleting_says_whether_it_was_there() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\nx\r\n");
    assert_eq!(session.say("delete a\r\n"), "DELETED\r\n");
    assert_eq!(session.say("delete a\r\n"), "NOT_FOUND\r\n");
    assert_eq!(session.say("delete a 0\r\n"), "NOT_FOUND\r\n");
    let usage = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
    assert_eq!(session.say("delete a 10\r\n"), usage);
}

#[test]
fn what_makes_no_sense_is_an_error_and_the_connection_goes_on() {
    let mut session = Session::new();
    for line in ["", " ", "bogus", "GET a", "get", "get ", "gets", "set a 0 0", "stats bogus", "mg"]
    {
        assert_eq!(session.say(format!("{line}\r\n")), "ERROR\r\n", "{line}");
    }
    let bad = "CLIENT_ERROR bad command line format\r\n";
    for line in ["set a x 0 1", "set a 0 x 1", "set a 0 0 x", "set a 0 0 -1"] {
        assert_eq!(session.say(format!("{line}\r\n")), bad, "{line}");
    }
    assert_eq!(session.say("get a\r\n"), "END\r\n");
    assert!(session.ended.is_none());
}

#[test]
fn a_request_of_http_or_a_tls_handshake_ends_the_connection_before_its_body_is_read() {
    let service = service(Options::default());
    let body = "set written 0 0 3\r\nyes\r\n";
    for head in [
        "POST / HTTP/1.1\r\nContent-Length: 26\r\n\r\n",
        "  PUT  /x  HTTP/1.0 \n\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "get /x HTTP/1.1\r\n\r\n",
        "set /x HTTP/1.1\r\n\r\n",
        "version http://cache/ HTTP/1.1\r\n\r\n",
        "POST /\r\nHost: cache\r\n\r\n",
        "\u{16}\u{3}\u{1}anything\r\n",
    ] {
        for split in [1, 3, 9, 1000] {
            let mut session = Session::of(&service);
            for piece in [head, body].concat().as_bytes().chunks(split) {
                session.hear(piece);
            }
            assert!(matches!(session.ended, Some(Err(_))), "{head:?} by {split}");
            let answer = String::from_utf8(session.out.take()).expect("text");
            assert!(answer.is_empty() || answer == "ERROR\r\n", "{head:?} by {split}: {answer}");
        }
    }
    // A key may look like a version, and a value like a request.
    let mut session = Session::of(&service);
    assert_eq!(session.say("get written\r\n"), "END\r\n");
    assert_eq!(session.say("set HTTP/1.1 0 0 15\r\nPOST / HTTP/1.1\r\n"), "STORED\r\n");
    let found = "VALUE HTTP/1.1 0 15\r\nPOST / HTTP/1.1\r\nEND\r\n";
    assert_eq!(session.say("get HTTP/1.1\r\nget x HTTP/1.1\r\n"), found.repeat(2));
}

#[test]
fn a_key_may_have_250_bytes_and_not_one_more() {
    let mut session = Session::new();
    let (longest, longer) = ("k".repeat(250), "k".repeat(251));
    assert_eq!(session.say(format!("set {longest} 0 0 1\r\nx\r\n")), "STORED\r\n");
    let value = format!("VALUE {longest} 0 1\r\nx\r\nEND\r\n");
    assert_eq!(session.say(format!("get {longest}\r\n")), value);
    let bad = "CLIENT_ERROR bad command line format\r\n";
    assert_eq!(session.say(format!("get {longer}\r\n")), bad);
    assert_eq!(session.say(format!("delete {longer}\r\n")), bad);
    assert_eq!(session.say(format!("mg {longer} v\r\n")), bad);
    // What was found before the wrong key is taken back, as in memcached.
    assert_eq!(session.say(format!("get {longest} {longer} {longest}\r\nversion\r\n")), {
        format!("{bad}VERSION {}\r\n", cache::VERSION)
    });
    // The data of a refused set is swallowed, so that it is not taken for commands.
    assert_eq!(session.say(format!("set {longer} 0 0 8\r\nget wxyz\r\n")), bad);
}

#[test]
fn a_value_that_is_too_large_is_swallowed_and_its_key_removed() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\nx\r\n");
    let refused = "SERVER_ERROR object too large for cache\r\n";
    let data = "get a\r\n".repeat(150_000);
    let request = format!("set a 0 0 {}\r\n{data}\r\nget a\r\n", data.len());
    assert_eq!(session.say(request), format!("{refused}END\r\n"));
}

#[test]
fn a_large_value_is_read_into_its_place_and_back() {
    let mut session = Session::new();
    let data = "0123456789".repeat(100_000);
    let request = format!("set a 1 0 {}\r\n{data}\r\n", data.len());
    let mut answers = String::new();
    for part in request.as_bytes().chunks(70_001) {
        answers += &session.say(part);
        assert!(session.waiting() <= 16 << 10);
    }
    assert_eq!(answers, "STORED\r\n");
    assert_eq!(session.say("get a\r\n"), format!("VALUE a 1 {}\r\n{data}\r\nEND\r\n", data.len()));
}

#[test]
fn items_expire_in_their_second() {
    let mut session = Session::new();
    session.say("set never 0 0 1\r\nx\r\nset gone 0 -1 1\r\nx\r\nset soon 0 10 1\r\nx\r\n");
    session.say("set unix 0 1700000020 1\r\nx\r\n");
    let mut keys = |at_s: u64| {
        session.now_ns = at_s * SECOND_NS;
        let answer = session.say("get never gone soon unix\r\n");
        let values = answer.lines().filter_map(|line| line.strip_prefix("VALUE "));
        values.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(keys(0), ["never", "soon", "unix"]);
    assert_eq!(keys(9), ["never", "soon", "unix"]);
    assert_eq!(keys(10), ["never", "unix"]);
    assert_eq!(keys(20), ["never"]);
}

#[test]
fn a_line_without_an_end_is_cut_off_unless_it_is_the_keys_of_a_get() {
    let mut session = Session::new();
    assert_eq!(session.say("x".repeat(2049)), "CLIENT_ERROR line too long\r\n");
    assert!(matches!(session.ended, Some(Err(_))));

    let mut session = Session::new();
    session.say("set key3 0 0 1\r\nx\r\n");
    let keys: Vec<_> = (0..10_000).map(|number| format!("key{number}")).collect();
    let line = format!("get {}\r\n", keys.join(" "));
    let mut answers = String::new();
    for part in line.as_bytes().chunks(999) {
        answers += &session.say(part);
        assert!(session.waiting() < 260);
    }
    assert_eq!(answers, "VALUE key3 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn answers_pause_between_two_keys_while_the_output_is_full() {
    let service = service(Options::default());
    let mut session = Session::of(&service);
    session.say(format!("set a 0 0 1000\r\n{}\r\n", "x".repeat(1000)));
    session.out = wire::Output::new(3000);
    session.hear(format!("get {}\r\nversion\r\n", vec!["a"; 100].join(" ")).as_bytes());
    let mut answers = String::new();
    let mut turns = 0;
    while !session.out.is_empty() {
        assert!(session.out.len() < 3000 + 1100, "{}", session.out.len());
        answers += &String::from_utf8_lossy(&session.out.take());
        session.hear(b"");
        turns += 1;
    }
    assert!(turns > 20, "{turns}");
    assert_eq!(answers.matches("VALUE a 0 1000\r\n").count(), 100);
    assert!(answers.ends_with(&format!("END\r\nVERSION {}\r\n", cache::VERSION)));
}

#[test]
fn a_meta_get_answers_what_its_flags_ask_in_their_order() {
    let mut session = Session::new();
    assert_eq!(session.say("mg a v\r\n"), "EN\r\n");
    assert_eq!(session.say("mg a v q\r\nmn\r\n"), "MN\r\n");
    assert_eq!(session.say("mg a k Oxyz\r\n"), "EN ka Oxyz\r\n");
    session.say("set a 9 100 2\r\nxy\r\n");
    assert_eq!(session.say("mg a\r\n"), "HD\r\n");
    assert_eq!(session.say("mg a v\r\n"), "VA 2\r\nxy\r\n");
    assert_eq!(session.say("mg a t s v q f k O1\r\n"), "VA 2 t100 s2 f9 ka O1\r\nxy\r\n");
    session.now_ns = 30 * SECOND_NS;
    assert_eq!(session.say("mg a l h t\r\n"), "HD l30 h1 t70\r\n");
    session.say("set b 0 0 1\r\nx\r\n");
    assert_eq!(session.say("mg b h t\r\nmg b h\r\n"), "HD h0 t-1\r\nHD h1\r\n");
    assert_eq!(session.say("mg b v v\r\n"), "CLIENT_ERROR duplicate flag\r\n");
    assert_eq!(session.say("mg b ?\r\n"), "CLIENT_ERROR invalid flag\r\n");
}

#[test]
fn statistics_count_what_was_asked() {
    let mut session = Session::new();
    session.say("set a 0 0 1\r\nx\r\nget a b\r\nmg a v\r\ndelete a\r\ndelete a\r\n");
    let stats = session.say("stats\r\n");
    for line in ["cmd_get 3", "cmd_set 1", "get_hits 2", "get_misses 1", "cmd_meta 1"] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line} in {stats}");
    }
    for line in ["delete_hits 1", "delete_misses 1", "curr_items 0", "limit_maxbytes 67108864"] {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line} in {stats}");
    }
    assert!(stats.ends_with("END\r\n"));
    assert!(session.say("stats settings\r\n").contains("STAT item_size_max 1048576\r\n"));
    assert_eq!(session.say("stats reset\r\n"), "RESET\r\n");
    assert!(session.say("stats\r\n").contains("STAT cmd_get 0\r\n"));
}

#[test]
fn quit_ends_the_connection_after_what_was_asked_before() {
    let mut session = Session::new();
    assert_eq!(session.say("get a\r\nquit\r\nget a\r\n"), "END\r\n");
    assert_eq!(session.ended, Some(Ok(())));
}

#[test]
fn a_spoiled_value_is_as_long_as_the_right_one() {
    let mut session = Session::with(Options { corrupt_every: Some(3), ..Options::default() });
    session.say("set a 0 0 4\r\nabcd\r\n");
    let answers: Vec<_> = (0..6).map(|_| session.say("get a\r\n")).collect();
    let wrong: Vec<_> = (0..6).filter(|i| !answers[*i].contains("abcd")).collect();
    assert_eq!(wrong, [2, 5]);
    assert!(answers.iter().all(|answer| answer.len() == answers[0].len()));
}

#[test]
fn numbers_wrap_at_two_to_the_64_and_stop_at_zero() {
    let mut session = Session::new();
    session.say("set n 0 0 20\r\n18446744073709551610\r\n");
    assert_eq!(session.say("incr n 5\r\n"), "18446744073709551615\r\n");
    assert_eq!(session.say("incr n 1\r\n"), "0\r\n");
    assert_eq!(session.say("incr n 18446744073709551615\r\n"), "18446744073709551615\r\n");
    assert_eq!(session.say("decr n 18446744073709551615\r\n"), "0\r\n");
    assert_eq!(session.say("decr n 1\r\n"), "0\r\n");
    session.say("set n 0 0 21\r\n118446744073709551610\r\n");
    let refused = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    assert_eq!(session.say("incr n 1\r\n"), refused);
}

#[test]
fn a_batch_of_reads_of_a_large_store_is_answered_like_reads_one_by_one() {
    let service = crate::common::service(Options { memory_bytes: 128 << 20, ..Options::default() });
    let mut session = Session::of(&service);
    let value = "v".repeat(2000);
    for number in 0..30_000 {
        session.say(format!("set k{number} 0 0 {} noreply\r\n{number:02000}\r\n", value.len()));
    }
    assert!(service.store().is_large());
    let mut batch = String::new();
    for number in (0..200).map(|step| step * 151 % 31_000) {
        batch += &match number % 5 {
            0 => format!("get k{number}\r\n"),
            1 => format!("mg k{number} v\r\n"),
            2 => format!("get k{number} nothing k{}\r\n", number + 1),
            3 => format!("set k{number} 0 0 1\r\n{}\r\n", number % 10),
            _ => "get \r\nmn\r\n".to_owned(),
        };
    }
    let together = session.say(&batch);
    let mut apart = Session::of(&service);
    let one_by_one: String =
        batch.split_inclusive('\n').map(|line| apart.say(line)).collect::<Vec<_>>().concat();
    assert_eq!(together, one_by_one);
    assert!(together.len() > 100 * 2000);
}
