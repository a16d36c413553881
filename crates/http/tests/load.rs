//! The http workload without a socket: what is said, which answers are right, and how wrong ones
//! are shown.

use http::load::SERVICE;
use load::{Done, WorkloadSpec};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::common::{Bench, RIGHT, ok, one, resolve};

#[test]
fn requests_are_said_with_their_headers_keys_and_bodies() {
    let workload = resolve(
        "service='http'\nmix={get=1, put=1}\nkeys={count=100, bytes=4}\n\
         [[request]]\nname='get'\npath='/items/{key}?a=%20'\nheaders={host='there',accept='x/y'}\n\
         [[request]]\nname='put'\npath='/items/{key}'\nmethod='PUT'\nbody='value of {key}'",
    );
    let said = Bench::of(&workload.expect("right")).asks(&[0, 1]);
    let get = "GET /items/k007?a=%20 HTTP/1.1\r\naccept: x/y\r\nhost: there\r\n\r\n";
    let put = "PUT /items/k007 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\n\r\n";
    assert_eq!(said, format!("{get}{put}value of k007").into_bytes());
}

#[test]
fn a_right_answer_is_right_in_every_framing() {
    let workload = one("path='/'\nexpect.body='hello, you'\nexpect.headers={ETag='\"1\"'}");
    let head = "HTTP/1.1 200 OK\r\netag: \"1\"\r\n";
    let chunks = "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\n, you\r\n0\r\n\r\n";
    for rest in ["content-length: 10\r\n\r\nhello, you", chunks, "\r\nhello, you"] {
        let found = Bench::finds(&workload, format!("{head}{rest}").as_bytes());
        assert_eq!(found, (RIGHT, vec![]), "{rest}");
    }
}

#[test]
fn a_wrong_body_is_found_with_its_bytes() {
    let (done, found) = Bench::finds(&one("path='/'\nexpect.body='hello, you'"), &ok("hello, yXu"));
    assert_eq!(done, Done { wrong: 1, ..RIGHT });
    let shown = (&found[0].expected[..], &found[0].received[..]);
    assert_eq!(shown, (&b"hello, you"[..], &b"hello, yXu"[..]));
    assert_eq!(found[0].note, "the body differs from byte 8 on, counted from 0");
    assert_eq!((&found[0].operation[..], &found[0].key[..]), ("a", &b""[..]));
}

#[test]
fn a_body_that_is_too_short_or_too_long_is_found() {
    let workload = one("path='/'\nexpect.body='hello'");
    let found = |body: &str| Bench::found(&workload, &ok(body));
    let case = |note: &str, shown: &str| (note.to_owned(), shown.to_owned());
    assert_eq!(found("hell"), case("the body ends after 4 of 5 bytes", "hell"));
    assert_eq!(found("hello, you"), case("the body goes on after its 5 bytes", "hello, you"));
    assert_eq!(found(""), case("the body ends after 0 of 5 bytes", ""));
}

#[test]
fn a_difference_far_into_a_body_is_shown_where_it_is() {
    let right: String = (0..20_000).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    let mut wrong = right.clone();
    wrong.replace_range(15_000..15_001, "!");
    let workload = one(&format!("path='/'\nexpect.body='{right}'"));
    let (_, found) = Bench::finds(&workload, &ok(&wrong));
    assert!(found[0].note.ends_with("(shown from byte 13976 on)"), "{}", found[0].note);
    assert_eq!(found[0].received, &wrong.as_bytes()[13_976..13_976 + 4096]);
    assert_eq!(found[0].expected, &right.as_bytes()[13_976..13_976 + 4096]);
}

#[test]
fn a_digest_and_a_length_are_held_against_the_body() {
    let digest: String = Sha256::digest("hello").iter().map(|b| format!("{b:02x}")).collect();
    let workload = one(&format!("path='/'\nexpect={{sha256='{digest}', bytes=5}}"));
    assert_eq!(Bench::finds(&workload, &ok("hello")), (RIGHT, vec![]));
    let (done, found) = Bench::finds(&workload, &ok("hellO"));
    assert_eq!(done.wrong, 1);
    assert!(found[0].expected.ends_with(digest.as_bytes()));
    assert!(found[0].received.ends_with(b", 5 bytes: hellO"));
    assert_eq!(Bench::found(&workload, &ok("hello you")).0, "the body has 9 bytes, not 5");
    let (note, shown) = Bench::found(&one("path='/'\nexpect.bytes=5"), &ok("hellos"));
    assert_eq!((&note[..], &shown[..]), ("the body has 6 bytes, not 5", "hellos"));
}

#[test]
fn a_wrong_status_or_header_is_found_with_the_head_that_came() {
    let refused = "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone";
    let (note, shown) = Bench::found(&one("path='/'\nexpect.body='x'"), refused.as_bytes());
    assert_eq!((&note[..], &shown[..]), ("the status is 404, not 200", refused));
    let (done, _) = Bench::finds(&one("path='/'\nexpect.status=404"), refused.as_bytes());
    assert_eq!(done, Done { misses: 1, ..RIGHT });
    let workload = one("path='/'\nexpect.headers={content-type='text/html'}");
    assert_eq!(Bench::found(&workload, &ok("")).0, "the header content-type is missing");
    let other = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 0\r\n\r\n";
    let (_, found) = Bench::finds(&workload, other);
    assert_eq!(found[0].note, "content-type is \"text/plain\"");
    assert_eq!(found[0].expected, b"content-type: text/html");
}

#[test]
fn a_server_with_too_much_to_do_refuses_and_is_not_wrong() {
    let said = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 4\r\n\r\nlate");
    for status in ["503 Service Unavailable", "429 Too Many Requests"] {
        let (done, found) = Bench::finds(&one("path='/'"), said(status).as_bytes());
        assert_eq!(done, Done { refused: 1, ..RIGHT });
        assert_eq!(found[0].received, said(status).as_bytes());
    }
    let (done, _) = Bench::finds(&one("path='/'\nexpect.status=503"), said("503 No").as_bytes());
    assert_eq!(done, RIGHT, "it may be what is expected");
    let (done, _) = Bench::finds(&one("path='/'"), said("500 Oh").as_bytes());
    assert_eq!(done, Done { wrong: 1, ..RIGHT });
}

#[test]
fn an_answer_holds_the_key_that_was_asked_for() {
    let workload = resolve(
        "service='http'\noperation='a'\nkeys={count=100, bytes=4}\n\
         [[request]]\nname='a'\npath='/{key}'\nexpect.body='I am {key}.'",
    );
    let workload = workload.expect("right");
    assert_eq!(Bench::finds(&workload, &ok("I am k007.")), (RIGHT, vec![]));
    let (_, found) = Bench::finds(&workload, &ok("I am k008."));
    assert_eq!((&found[0].key[..], &found[0].expected[..]), (&b"k007"[..], &b"I am k007."[..]));
    assert_eq!(found[0].received, b"I am k008.");
}

#[test]
fn what_is_no_answer_is_wrong_shown_and_the_end_of_the_connection() {
    let mut bench = Bench::of(&one("path='/'"));
    bench.asks(&[0, 0]);
    let fault = bench.gets(b"SSH-2.0-OpenSSH\r\n").expect_err("no HTTP");
    assert!(fault.to_string().contains("status line"), "{fault}");
    assert_eq!(bench.events.done, [Done { wrong: 1, ..RIGHT }]);
    assert_eq!(bench.events.findings[0].received, b"SSH-2.0-OpenSSH\r\n");
    assert!(Bench::of(&one("path='/'")).gets(b"x").is_err(), "nobody asked");
}

#[test]
fn an_answer_over_its_limit_is_wrong_and_takes_no_memory() {
    let workload = one("path='/'");
    let mut bench = Bench::of(&workload);
    bench.asks(&[0]);
    let fault = bench.gets(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741825\r\n\r\n");
    assert!(fault.expect_err("refused").to_string().contains("larger than 1 GiB"));

    let mut bench = Bench::of(&workload);
    bench.asks(&[0]);
    bench.gets(b"HTTP/1.1 200 OK\r\n\r\n").expect("a head");
    let piece = vec![b'x'; 16 << 20];
    let outcomes: Vec<_> = (0..65).map(|_| bench.gets(&piece)).collect();
    let (last, all) = outcomes.split_last().expect("some");
    assert!(all.iter().all(Result::is_ok) && last.is_err());
    assert_eq!(bench.events.done, [Done { wrong: 1, ..RIGHT }]);
    assert_eq!(bench.events.findings[0].note, "the answer's body is larger than 1 GiB");
    assert!(bench.input.capacity() <= 2 * piece.len());
}

#[test]
fn pipelined_answers_belong_to_their_requests_and_late_ones_to_none() {
    let text = "service='http'\nmix={a=1,b=1,c=1}\n\
                [[request]]\nname='a'\npath='/'\nexpect.body='A'\n\
                [[request]]\nname='b'\npath='/'\nmethod='HEAD'\n\
                [[request]]\nname='c'\npath='/'\nexpect.status=204";
    let mut bench = Bench::of(&resolve(text).expect("right"));
    bench.asks(&[0, 1, 2, 0, 0]);
    bench.dialect.expire(3);
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
    let none = b"HTTP/1.1 204 No Content\r\n\r\n";
    let late = ok("late and wrong");
    for bytes in [&ok("A")[..], head, none, &late, &ok("A")] {
        bench.gets(bytes).expect("understood");
    }
    let tags: Vec<_> = bench.events.done.iter().map(|done| (done.tag, done.wrong)).collect();
    assert_eq!(tags, [(0, 0), (1, 0), (2, 0), (4, 0)]);
    assert_eq!(bench.events.findings, []);
}

#[test]
fn a_server_that_closes_says_so_or_ends_its_body_so() {
    let workload = one("path='/'\nexpect.body='all'");
    let mut bench = Bench::of(&workload);
    bench.asks(&[0]);
    bench.gets(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nall").unwrap();
    assert!(bench.events.close);

    let mut bench = Bench::of(&workload);
    bench.asks(&[0]);
    bench.gets(b"HTTP/1.0 200 OK\r\n\r\nall").unwrap();
    assert_eq!((bench.events.done.len(), bench.events.close), (0, false));
    bench.dialect.closed(0, &mut bench.events).expect("that is its end");
    assert_eq!(bench.events.done, [RIGHT]);

    let mut bench = Bench::of(&workload);
    bench.dialect.closed(0, &mut bench.events).expect("nothing was asked");
    bench.asks(&[0]);
    assert!(bench.dialect.closed(0, &mut bench.events).is_err());
    bench.gets(&ok("all")[..20]).unwrap();
    let fault = bench.dialect.closed(0, &mut bench.events).expect_err("cut off").to_string();
    assert!(fault.contains("in the middle of an answer"), "{fault}");
}

#[test]
fn what_makes_no_sense_is_named_with_what_would() {
    let all = |text: &str| resolve(&format!("service='http'\n{text}")).expect_err(text);
    let said = |rest: &str| all(&format!("operation='a'\n[[request]]\nname='a'\n{rest}"));
    assert!(all("operation='a'").starts_with("workload.request: describe at least one"));
    let unknown = all("operation='b'\n[[request]]\nname='a'\npath='/'");
    assert_eq!(unknown, "workload.operation: http has no operation \"b\"; it has a");
    let valued = all("operation='a'\nvalue={bytes=1}\n[[request]]\nname='a'\npath='/'");
    assert!(valued.contains("means nothing here"), "{valued}");
    let unused = all("operation='a'\nkeys={count=1}\n[[request]]\nname='a'\npath='/'");
    assert!(unused.contains("write `{key}` into a path"), "{unused}");
    let twice = said("path='/'\n[[request]]\nname='a'\npath='/'");
    assert!(twice.contains("two are called \"a\""), "{twice}");
    for (rest, key, what) in [
        ("path='x'", "path", "begin with `/`"),
        ("path='/{id}'", "path", "percent-encode"),
        ("path='/{key}'", "path", "needs keys"),
        ("path='/'\nmethod='GE T'", "method", "is not a method"),
        ("path='/'\nheaders={content-length='1'}", "headers", "follows from the body"),
        ("path='/'\nbody='a'\nbody_file='b'", "body", "say either"),
        ("path='/'\nbody_file='no/such/file'", "body_file", "no/such/file"),
        ("path='/'\nexpect.status=100", "expect.status", "no status"),
        ("path='/'\nexpect.sha256='12'", "expect.sha256", "64 hexadecimal"),
        ("path='/'\nexpect={body='a',bytes=1}", "expect.body", "known by itself"),
        ("path='/'\nexpect.body='{key}'", "expect.body", "needs keys"),
        ("path='/'\nmethod='HEAD'\nexpect.bytes=1", "expect", "no body"),
    ] {
        let said = said(rest);
        assert!(said.starts_with(&format!("workload.request.a.{key}: ")), "{said}");
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn bodies_come_from_files_beside_the_suite_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("body"), "not a {key}").expect("a file");
    let text = "service='http'\noperation='a'\n[[request]]\nname='a'\npath='/'\nmethod='POST'\n\
                body_file='body'\nexpect.body_file='body'";
    let spec = WorkloadSpec::read(text.parse().expect("well formed")).expect("read");
    let workload = spec.workload(&SERVICE, folder.path()).expect("right");
    let workload = spec.choose(&workload).expect("chosen");
    assert!(Bench::of(&workload).asks(&[0]).ends_with(b"content-length: 11\r\n\r\nnot a {key}"));
    assert_eq!(Bench::finds(&workload, &ok("not a {key}")), (RIGHT, vec![]));
}

/// Right answers with `body`, with a length and in chunks, four of them.
fn stream(body: &str) -> Vec<u8> {
    let mut stream = Vec::new();
    for chunk in [5, 200] {
        stream.extend(ok(body));
        stream.extend(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        for piece in body.as_bytes().chunks(chunk) {
            stream.extend(format!("{:x}\r\n", piece.len()).bytes());
            stream.extend([piece, b"\r\n"].concat());
        }
        stream.extend(b"0\r\n\r\n");
    }
    stream
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_findings(
        sizes in prop::collection::vec(1_usize..60, 1..20),
        flip in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        expired in 0_u32..8,
    ) {
        let body = "the right body".repeat(9);
        let workload = one(&format!("path='/'\nexpect.body='{body}'"));
        let mut stream = stream(&body);
        if let Some((at, byte)) = flip {
            *at.get_mut(&mut stream) = byte;
        }
        let outcome = |sizes: &[usize]| {
            let mut bench = Bench::of(&workload);
            bench.asks(&[0; 4]);
            bench.dialect.expire(expired);
            let (mut rest, mut sizes) = (&stream[..], sizes.iter().cycle());
            let mut outcome = Ok(());
            while !rest.is_empty() && outcome.is_ok() && !bench.events.close {
                let size = sizes.next().expect("endless");
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                rest = after;
                outcome = bench.gets(piece);
            }
            let findings = bench.events.findings.into_iter();
            // Of what can't be understood, only as much is shown as has come.
            let notes: Vec<_> = findings.map(|finding| (finding.note, finding.expected)).collect();
            (bench.events.done, notes, outcome)
        };
        prop_assert_eq!(outcome(&sizes), outcome(&[usize::MAX]));
    }
}
