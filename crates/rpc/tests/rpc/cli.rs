//! The client: `loadline rpc call`, `list`, `describe` and `health`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::raw::{self, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame, literal};
use crate::served::{PROGRAM, Served, lines, rpc, rpc_with, said};

const ADD: &str = "loadline.rpc.v1.Table/Add";

#[test]
fn functions_are_called_by_what_reflection_says_of_them() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let out = rpc(&["call", at, ADD, r#"{"value": 2}"#]);
    assert_eq!(lines(&out), [json!({ "value": "2" })], "{}", said(&out));
    assert_eq!(lines(&rpc(&["call", at, ADD])), [json!({ "value": "2" })], "a total");
    let out = rpc(&["call", at, "loadline.rpc.v1.Table/Who"]);
    assert_eq!(lines(&out)[0]["pid"], server.child.id());
    assert_eq!(lines(&out)[0]["carrier"], "tcp");
    let sample = json!({ "text": "größe", "reals": [1.5, -0.5], "counts": { "a": "1" } });
    let out =
        rpc_with(&["call", at, "loadline.rpc.v1.Table/Echo", "-", "--gzip"], &sample.to_string());
    let back = &lines(&out)[0];
    for key in ["text", "reals", "counts"] {
        assert_eq!(back[key], sample[key]);
    }
}

#[test]
fn streams_are_lines_both_ways() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let size = |size: i32| format!(r#"{{"responseParameters": [{{"size": {size}}}]}}"#);
    let input = format!("{}\n{}{}", size(1), size(2), size(0));
    let out = rpc_with(&["call", at, "grpc.testing.TestService/FullDuplexCall", "-"], &input);
    let sizes: Vec<_> = lines(&out)
        .iter()
        .map(|line| line["payload"]["body"].as_str().expect("bytes").len())
        .collect();
    assert_eq!(sizes, [4, 4, 0], "base64; {}", said(&out));
    let requests = r#"{"payload": {"body": "AAAA"}} {"payload": {"body": "AA=="}}"#;
    let out = rpc(&["call", at, "grpc.testing.TestService/StreamingInputCall", requests]);
    assert_eq!(lines(&out), [json!({ "aggregatedPayloadSize": 4 })]);
    let out = rpc(&["call", at, "grpc.testing.TestService/StreamingInputCall"]);
    assert_eq!(lines(&out), [json!({ "aggregatedPayloadSize": 0 })], "no requests");
}

#[test]
fn a_status_is_an_exit_code_and_a_line() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let status = r#"{"responseStatus": {"code": 5, "message": "größe % \n x"}}"#;
    let out = rpc(&["call", at, "grpc.testing.TestService/UnaryCall", status]);
    assert_eq!(out.status.code(), Some(69));
    assert_eq!(said(&out), "error: NOT_FOUND: größe % \n x\n");
    let pause = r#"{"ns": "20000000000"}"#;
    let out = rpc(&["call", at, "loadline.rpc.v1.Table/Sleep", pause, "--timeout", "20ms"]);
    assert_eq!(out.status.code(), Some(68), "{}", said(&out));
    let out = rpc(&["call", at, "grpc.testing.TestService/UnimplementedCall"]);
    assert_eq!(out.status.code(), Some(76));
    assert!(said(&out).contains("unknown method UnimplementedCall"), "{}", said(&out));
}

#[test]
fn a_call_that_reflection_refuses_has_the_exit_code_of_that_status() {
    let tokens = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(tokens.path(), "a-token-of-16-bytes-and-more\n").expect("written");
    let server = Served::start(&["--token-file", &tokens.path().display().to_string()]);
    for command in [&["call", &server.address(), ADD][..], &["list", &server.address()]] {
        let out = rpc(command);
        assert_eq!(out.status.code(), Some(80), "{}", said(&out));
        assert!(said(&out).starts_with("error: reflection: UNAUTHENTICATED"), "{}", said(&out));
    }
}

#[test]
fn a_client_sends_the_first_token_of_a_file() {
    let tokens = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(tokens.path(), "# of tests\na-token-of-16-bytes-and-more\n").expect("written");
    let file = tokens.path().display().to_string();
    let server = Served::start(&["--token-file", &file]);
    let (grpc, frames) = (server.address(), format!("tcp:{}", server.address()));
    for command in [&["list", &grpc][..], &["call", &grpc, ADD], &["ping", &frames, "--count", "1"]]
    {
        let out = rpc(&[command, &["--token-file", &file]].concat());
        assert!(out.status.success(), "{}", said(&out));
    }
    let two = ["--token-file", &file, "--header", "Authorization: Bearer x"];
    let out = rpc(&[&["list", &grpc][..], &two].concat());
    assert_eq!(out.status.code(), Some(2), "{}", said(&out));
    assert!(said(&out).contains("give one"), "{}", said(&out));
}

#[test]
fn what_is_typed_wrong_is_named_with_line_and_column() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let refused = |args: &[&str], words: &[&str]| {
        let out = rpc(args);
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        words.iter().for_each(|words| assert!(said(&out).contains(words), "{}", said(&out)));
    };
    let fields = "the fields of loadline.rpc.v1.Number are value";
    refused(&["call", at, ADD, r#"{"valeu": 2}"#], &["valeu", "line 1 column 9", fields]);
    let echo = "loadline.rpc.v1.Table/Echo";
    let within = r#"{"samples": [{"boxed": {"valeu": 2}}]}"#;
    refused(&["call", at, echo, within], &["samples[0].boxed", fields]);
    let of_sample = "the fields of loadline.rpc.v1.Sample are number, text, real";
    refused(&["call", at, echo, r#"{"inner": {"txet": 2}}"#], &["inner", of_sample]);
    refused(&["call", at, ADD, "{\n\"value\": \"x\"}"], &["line 2 column"]);
    let unquoted = ["the request: key must be a string at line 1 column 2", "names in \"\""];
    refused(&["call", at, ADD, "{value: 2}"], &unquoted);
    refused(&["call", at, ADD, "{} {}"], &["one request"]);
    refused(&["call", at, ADD, "@/no/such/file"], &["/no/such/file"]);
    refused(&["call", at, "loadline.rpc.v1.Table/Nil"], &["no method Nil", "Add"]);
    refused(&["call", at, "no.Such/Thing"], &["no.Such", "loadline.rpc.v1.Table"]);
    refused(&["call", at, "Thing"], &["package.Service/Method"]);
    refused(&["call", "a b", ADD], &["HOST:PORT"]);
    refused(&["call", at, ADD, "--header", "x"], &["NAME: VALUE"]);
    refused(&["list", "grpcs://127.0.0.1"], &["--tls-ca"]);
    // Port 1 has no server.
    for (command, flags) in [
        (["list", "127.0.0.1:1"], " --listen 127.0.0.1:1"),
        (["list", "unix:/no/one"], " --unix /no/one"),
        (["ping", "tcp:127.0.0.1:1"], " --listen 127.0.0.1:1"),
        (["ping", "unix:/no/one"], " --unix /no/one"),
        (["ping", "shm:/no/one"], " --shm /no/one"),
    ] {
        let out = rpc(&command);
        assert_eq!(out.status.code(), Some(1));
        assert!(said(&out).contains("no server is there"), "{}", said(&out));
        let words = format!("`loadline serve rpc{flags}` starts one");
        assert!(said(&out).contains(&words), "{}", said(&out));
    }
}

#[test]
fn a_server_that_is_none_of_grpc_is_named_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    // In turn: HTTP/1, an alert of TLS, a close, and silence.
    let answers: [&[u8]; 4] =
        [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\0\x02\x02F", b"", b""];
    let server = std::thread::spawn(move || {
        for (number, answer) in answers.into_iter().enumerate() {
            let (mut socket, _) = listener.accept().expect("a client");
            socket.write_all(answer).expect("written");
            if number < 3 {
                socket.shutdown(Shutdown::Write).expect("shut");
            }
            // A close with bytes unread would take back what was written.
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
    for (words, timeout) in [
        ("speaks HTTP/1", "60s"),
        ("--tls-ca FILE", "60s"),
        ("closed the connection", "60s"),
        ("has answered in", "200ms"),
    ] {
        let out = rpc(&["list", &at, "--connect-timeout", timeout]);
        assert_eq!(out.status.code(), Some(1));
        assert!(said(&out).contains(words) && said(&out).contains(&at), "{}", said(&out));
    }
    server.join().expect("it ends");
}

/// Answers a call of each connection in turn with this many messages of no bytes, and OK.
fn answer_with(listener: TcpListener, counts: &[usize]) {
    for count in counts {
        let (mut socket, _) = listener.accept().expect("a client");
        socket.write_all(&frame(SETTINGS, 0, 0, &[])).expect("written");
        socket.read_exact(&mut [0; raw::PREFACE.len()]).expect("a preface");
        loop {
            let mut head = [0; 9];
            socket.read_exact(&mut head).expect("a frame");
            let [_, a, b, kind, flags, ..] = head;
            let length = usize::from(u16::from_be_bytes([a, b]));
            socket.read_exact(&mut vec![0; length]).expect("its payload");
            // The end of the request.
            if kind == DATA && flags & END_STREAM != 0 {
                break;
            }
        }
        let kind = literal("content-type", "application/grpc");
        let first = [literal(":status", "200"), kind].concat();
        let last = literal("grpc-status", "0");
        let answer = [
            frame(HEADERS, END_HEADERS, 1, &first),
            frame(DATA, 0, 1, &raw::message(&[]).repeat(*count)),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &last),
        ];
        socket.write_all(&answer.concat()).expect("written");
        let _ = socket.read_to_end(&mut Vec::new());
    }
}

#[test]
fn a_call_of_one_answer_fails_where_none_or_several_come() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let proto = tempfile::Builder::new().suffix(".proto").tempfile().expect("a file");
    let text = "syntax = \"proto3\"; package x; message M { string a = 2; } \
                service S { rpc One(M) returns (M); rpc Many(M) returns (stream M); }";
    std::fs::write(proto.path(), text).expect("written");
    let counts = [0, 1, 2, 0, 2];
    let server = std::thread::spawn(move || answer_with(listener, &counts));
    for (method, count, code) in [
        ("x.S/One", 0, 76),
        ("x.S/One", 1, 0),
        ("x.S/One", 2, 76),
        ("x.S/Many", 0, 0),
        ("x.S/Many", 2, 0),
    ] {
        let out = rpc(&["call", &at, method, "--proto", &proto.path().display().to_string()]);
        assert_eq!(out.status.code(), Some(code), "{method} {count}: {}", said(&out));
        let shown = if code == 0 { count } else { 0 };
        assert_eq!(lines(&out).len(), shown, "{method} {count}");
        assert!(
            code == 0 || said(&out).contains("UNIMPLEMENTED: the answer has"),
            "{}",
            said(&out)
        );
    }
    server.join().expect("it ends");
}

#[test]
fn a_server_of_something_else_is_named_by_what_came_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp:{}", listener.local_addr().expect("an address"));
    let settings = frame(SETTINGS, 0, 0, &[]);
    let answers =
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &settings, b"SSH-2.0", b"\x9blrf", b""];
    let answers = answers.map(<[u8]>::to_vec);
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = listener.accept().expect("a client");
            socket.write_all(&answer).expect("written");
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
    for (words, timeout) in [
        ("what came is \"HTTP/1.1 400 Bad\", an answer of HTTP/1", "600s"),
        ("HTTP/2, as gRPC has it: call it by grpc://", "600s"),
        ("what came is \"SSH-2.0\"", "600s"),
        ("a part of a greeting has come", "200ms"),
        ("nothing has come (--connect-timeout): is this the port", "200ms"),
    ] {
        let out = rpc(&["ping", &at, "--connect-timeout", timeout]);
        assert_eq!(out.status.code(), Some(1), "{}", said(&out));
        assert!(said(&out).contains(words) && said(&out).contains(&at), "{}", said(&out));
    }
    server.join().expect("it ends");
}

#[test]
fn an_answer_over_the_clients_own_limit_names_its_flag() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/grpc/testing/test.proto");
    let size = r#"{"responseSize": 2000}"#;
    let call = ["call", at, "grpc.testing.TestService/UnaryCall", size, "--proto", proto];
    let out = rpc(&[&call[..], &["--max-message", "1000"]].concat());
    assert_eq!(out.status.code(), Some(72), "{}", said(&out));
    let right = "RESOURCE_EXHAUSTED: a message of the answer is larger than 1000 bytes: allow more \
                 with --max-message";
    assert!(said(&out).contains(right), "{}", said(&out));
}

#[test]
fn a_server_cannot_command_the_terminal() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let status = r#"{"responseStatus": {"code": 5, "message": "\u001b[2J gone"}}"#;
    let out = rpc(&["call", at, "grpc.testing.TestService/UnaryCall", status]);
    assert_eq!(said(&out), "error: NOT_FOUND: \\u{1b}[2J gone\n");
}

#[test]
fn services_functions_and_messages_are_listed_and_described() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let text = |args: &[&str]| String::from_utf8(rpc(args).stdout).expect("text");
    let services = text(&["list", at]);
    let known = [
        "connectrpc.conformance.v1.ConformanceService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "grpc.testing.TestService",
        "loadline.rpc.v1.Table",
    ];
    assert_eq!(services.lines().collect::<Vec<_>>(), known);
    assert!(text(&["list", at, "loadline.rpc.v1.Table"]).contains("loadline.rpc.v1.Table/Add\n"));
    let service = text(&["describe", at, "loadline.rpc.v1.Table"]);
    let line = "  rpc Add(loadline.rpc.v1.Number) returns (loadline.rpc.v1.Number);\n";
    assert!(service.starts_with("service loadline.rpc.v1.Table {\n") && service.contains(line));
    let sample = text(&["describe", at, "loadline.rpc.v1.Sample"]);
    for line in [
        "  int64 number = 1;",
        "  repeated double reals = 10;",
        "  map<string, int64> counts = 12;",
        "    loadline.rpc.v1.Number boxed = 9;",
        "  loadline.rpc.v1.Sample inner = 6;",
    ] {
        assert!(sample.lines().any(|one| one == line), "{line} in\n{sample}");
    }
    let out = rpc(&["describe", at, "loadline.rpc.v1.Table/Ad"]);
    assert!(said(&out).contains("list the methods of loadline.rpc.v1.Table"), "{}", said(&out));
    for (typed, meant) in [
        ("loadline.rpc.v1.Table.Ad", "loadline.rpc.v1.Table.Add"),
        ("loadline.rpc.v1.Nubmer", "loadline.rpc.v1.Number"),
        ("grpc.testing.SimpleReqest", "grpc.testing.SimpleRequest"),
        ("loadline.Tabel", "loadline.rpc.v1.Table"),
    ] {
        let out = rpc(&["describe", at, typed]);
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        let words = format!("there is no {typed} (did you mean {meant}");
        assert!(said(&out).contains(&words), "{}", said(&out));
    }
    let health = text(&["health", at]);
    assert_eq!(health, "SERVING\n");
    let out = rpc(&["health", at, "no.Such"]);
    assert_eq!(out.status.code(), Some(69));
}

#[test]
fn proto_files_need_no_reflection_and_an_import_that_is_missing_is_named() {
    let server = Served::start(&[]);
    let at = &server.address()[..];
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("more")).expect("a folder");
    let number =
        "syntax = \"proto3\"; package loadline.rpc.v1; message Number { int64 value = 1; }";
    std::fs::write(path("more/number.proto"), number).expect("written");
    let service = "syntax = \"proto3\"; package loadline.rpc.v1; import \"number.proto\";\n\
                   service Table { rpc Add(Number) returns (Number); }";
    std::fs::write(path("table.proto"), service).expect("written");
    let file = path("table.proto").display().to_string();
    let more = path("more").display().to_string();
    let with = |args: &[&str]| {
        rpc(&[&["call", at, ADD, r#"{"value": 3}"#, "--proto", &file], args].concat())
    };
    assert_eq!(lines(&with(&["--import", &more])), [json!({ "value": "3" })]);
    let out = with(&[]);
    assert_eq!(out.status.code(), Some(2));
    let why = said(&out);
    assert!(why.contains("number.proto") && why.contains("looked in"), "{why}");
    assert!(why.contains("--import DIR"), "{why}");
    let number = path("more/number.proto").display().to_string();
    let out = rpc(&["list", at, "--proto", &number]);
    assert_eq!((&out.stdout[..], &said(&out)[..]), (&b""[..], "there are no services\n"));
}

#[test]
fn own_frames_are_called_as_grpc_is_with_what_can_be_planted() {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().join("memory").display().to_string();
    let server = Served::start(&["--shm", &shared]);
    let pipe = format!("pipe:exec {PROGRAM} serve --pipe");
    let (tcp, shm) = (format!("tcp:{}", server.address()), format!("shm:{shared}"));
    let input = r#"{"responseParameters": [{"size": 1}, {"size": 2}]} {}"#;
    let requests = r#"{"payload": {"body": "AAAA"}} {"payload": {"body": "AA=="}}"#;
    for flags in [&[][..], &["--writes", "field", "--reads", "2"], &["--buffered"]] {
        for address in ["here:", "frames:", &pipe, &tcp, &shm] {
            if address == "here:" && !flags.is_empty() {
                continue;
            }
            let call = |method: &str, request: &str| {
                let method = format!("grpc.testing.TestService/{method}");
                let out = rpc(&[&["call", address, &method, request][..], flags].concat());
                (out.status.code(), lines(&out), said(&out))
            };
            let (code, came, said) = call("FullDuplexCall", input);
            assert_eq!((code, came.len()), (Some(0), 2), "{address} {flags:?}: {said}");
            let (_, came, said) = call("StreamingInputCall", requests);
            assert_eq!(came, [json!({ "aggregatedPayloadSize": 4 })], "{address}: {said}");
            let (_, came, said) = call("StreamingOutputCall", &input[..input.len() - 3]);
            assert_eq!(came.len(), 2, "{address}: {said}");
            let (code, _, said) = call("UnaryCall", r#"{"responseStatus": {"code": 5}}"#);
            assert_eq!(code, Some(69), "{address}: {said}");
        }
    }
    for flags in [&["--nagle", "--quickack"][..], &["--future", "condvar"], &["--wait", "spin"]] {
        let out = rpc(&[&["call", &tcp, ADD, r#"{"value": 2}"#], flags].concat());
        assert_eq!(lines(&out).len(), 1, "{flags:?}: {}", said(&out));
    }
    for (args, words) in [
        (&["call", &server.address(), ADD, "--nagle"][..], "are for own frames"),
        (&["call", &tcp, ADD, "--header", "a: b"], "own frames take one"),
        (&["call", &tcp, "loadline.rpc.v1.Table/Nil"], "no method Nil"),
        (&["call", &tcp, ADD, "{} {}"], "one request"),
        (&["call", "tcp:nowhere", ADD], "names no carrier"),
        (&["ping", "127.0.0.1:50771"], "(did you mean tcp:127.0.0.1:50771?)"),
        (&["ping", "nowhere"], "here:, frames:, shm:PATH"),
        (&["ping", "nowhere"], "or, for ping with add, direct:, codec: or table:"),
        (&["ping", "here:", "--bytes", "100"], "add --function echo"),
    ] {
        let out = rpc(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", said(&out));
        assert!(said(&out).contains(words), "{args:?}: {}", said(&out));
    }
}

#[test]
fn a_stream_over_own_frames_prints_what_comes_while_it_sends() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&[]);
    let tcp = format!("tcp:{}", server.address());
    let body = "A".repeat(133_336);
    let one = json!({ "payload": { "body": body }, "responseParameters": [{ "size": 100_000 }] });
    let file = folder.path().join("requests");
    std::fs::write(&file, one.to_string().repeat(6)).expect("written");
    let (method, file) = ("grpc.testing.TestService/FullDuplexCall", file.display().to_string());
    for address in ["here:", "frames:", &tcp] {
        let out = rpc(&["call", address, method, &format!("@{file}"), "--timeout", "60s"]);
        assert_eq!(
            (out.status.code(), lines(&out).len()),
            (Some(0), 6),
            "{address}: {}",
            said(&out)
        );
    }

    // The end of a call is seen while standard input is open.
    let fails = r#"{"responseStatus": {"code": 5}} "#;
    for (address, input, code) in
        [(&tcp[..], "", 68), (&tcp, fails, 69), ("here:", "", 68), ("here:", fails, 69)]
    {
        let mut command = Command::new(PROGRAM);
        command.args(["rpc", "call", address, method, "-", "--timeout"]);
        command.arg(if code == 68 { "100ms" } else { "300s" });
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("written");
        let (ended, end) = mpsc::channel::<()>();
        let open = std::thread::spawn(move || {
            let is_late = end.recv_timeout(Duration::from_secs(60)).is_err();
            drop(stdin);
            is_late
        });
        let status = child.wait().expect("it ends");
        let _ = ended.send(());
        assert!(!open.join().expect("a thread"), "{address} {input}: only with its input");
        assert_eq!(status.code(), Some(code), "{address} {input}");
    }
}
