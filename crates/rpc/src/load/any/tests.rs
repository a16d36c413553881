//! The operation `call`: its keys, what it makes of a schema, and what is right.

use std::path::{Path, PathBuf};

use load::Scenario;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::plan::{Plan, prefixed};
use super::*;
use crate::client::Schema;
use crate::load::SERVICE;

const ECHO: &str = "loadline.rpc.v1.Table/Echo";
const ADD: &str = "loadline.rpc.v1.Table/Add";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("proto")
}

fn schema() -> Schema {
    let files = ["loadline/rpc/v1/table.proto", "grpc/testing/test.proto"];
    Schema::of_files(&files.map(|file| root().join(file)), &[root()]).expect("a schema")
}

/// A message with fields of all kinds.
pub(super) fn sample() -> MessageDescriptor {
    schema().pool.get_message_by_name("loadline.rpc.v1.Sample").expect("a message")
}

/// A Sample of JSON.
pub(super) fn message(json: &str) -> DynamicMessage {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(sample(), &mut deserializer).expect("a Sample")
}

fn spec(method: &str) -> AnySpec {
    AnySpec {
        method: Some(method.to_owned()),
        proto: None,
        imports: Vec::new(),
        message: None,
        requests: Some(3),
        expect: ExpectSpec::default(),
    }
}

fn any(spec: AnySpec) -> Result<Any, (String, String)> {
    let method = spec.method.clone().expect("a method");
    Plan::new(spec, None, 1, 7).any(&schema().method(&method).expect("a method"))
}

fn fields(name: &str, text: &str) -> ExpectSpec {
    let fields = [(name.to_owned(), text.to_owned())].into();
    ExpectSpec { fields, ..ExpectSpec::default() }
}

fn note(checked: Checked) -> String {
    match checked {
        Checked::Wrong(_, note) => note,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_made_of_the_schema_and_the_seed_or_stated() {
    let made = any(spec(ECHO)).expect("a plan");
    assert_eq!(made.requests.len(), 3);
    assert_ne!(made.requests[0], made.requests[1]);
    assert_eq!(made.requests, any(spec(ECHO)).expect("a plan").requests, "the same seed");
    let message = Some(r#"{"value": 2}"#.to_owned());
    let stated = any(AnySpec { message, ..spec(ADD) }).expect("a plan");
    assert_eq!(stated.requests, [prefixed(&[8, 2])]);
    assert_eq!(stated.check.check(0, &prefixed(&[8, 9])), Checked::Unchecked);
    assert_eq!(note(stated.check.check(0, &[])), "0 messages, and one is due");
    let cut = stated.check.check(0, &prefixed(&[8, 9])[..6]);
    assert_eq!(note(cut), "the answer ends within a message");
}

#[test]
fn an_echo_is_compared_as_a_message_in_whatever_bytes() {
    let expect = ExpectSpec { echo: true, ..ExpectSpec::default() };
    let text = Some(r#"{"reals": [1.0, 2.0], "small": 3}"#.to_owned());
    let echo = any(AnySpec { message: text, expect, ..spec(ECHO) }).expect("a plan");
    let sent = echo.requests[0].clone();
    assert_eq!(echo.check.check(0, &sent), Checked::Right);
    // Not packed, and after the other field.
    let one = [81, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let two = [81, 0, 0, 0, 0, 0, 0, 0, 0x40];
    let other = [&[14 << 3, 3][..], &one, &two].concat();
    assert_eq!(echo.check.check(0, &prefixed(&other)), Checked::Right);
    let wrong = [&[14 << 3, 4][..], &one, &two].concat();
    assert_eq!(note(echo.check.check(0, &prefixed(&wrong))), "not what was asked");
    assert_eq!(note(echo.check.check(0, &[])), "0 messages, and one is due");
    assert_eq!(note(echo.check.check(0, &sent[..9])), "the answer ends within a message");
    let twice = [&sent[..], &sent].concat();
    assert_eq!(note(echo.check.check(0, &twice)), "2 messages, and one is due");
    assert!(note(echo.check.check(0, &prefixed(&[0x0b]))).contains("can't be read as"));
}

#[test]
fn an_example_and_fields_say_what_is_right() {
    let message = Some(r#"{"value": "5"}"#.to_owned());
    let expect = ExpectSpec { message, ..ExpectSpec::default() };
    let example = any(AnySpec { expect, ..spec(ADD) }).expect("a plan");
    for _ in 0..2 {
        assert_eq!(example.check.check(1, &prefixed(&[8, 5])), Checked::Right);
        assert_eq!(note(example.check.check(1, &prefixed(&[8, 6]))), "another message");
    }
    let message = Some(r#"{"value": 20}"#.to_owned());
    let expect = fields("value", "request.value * 2 + 1");
    let sums = any(AnySpec { message, expect, ..spec(ADD) }).expect("a plan");
    assert_eq!(sums.check.check(0, &prefixed(&[8, 41])), Checked::Right);
    assert_eq!(note(sums.check.check(0, &prefixed(&[8, 42]))), "value is 42, not 41");
}

#[test]
fn a_stream_without_a_message_is_not_what_is_expected() {
    let method = "grpc.testing.TestService/StreamingOutputCall";
    let message = Some(r#"{"payload": {"body": "Bw=="}}"#.to_owned());
    let example = ExpectSpec { message, ..ExpectSpec::default() };
    for expect in [example, fields("payload.type", "0")] {
        let stream = any(AnySpec { expect, ..spec(method) }).expect("a plan");
        // Twice: what has been right once is compared by its bytes.
        for _ in 0..2 {
            let one = prefixed(&[10, 3, 18, 1, 7]);
            assert_eq!(stream.check.check(0, &one.repeat(2)), Checked::Right);
            assert_eq!(note(stream.check.check(0, &[])), "no message, and one is due at least");
        }
    }
}

#[test]
fn what_does_not_fit_the_method_names_its_key() {
    let fails = |spec| any(spec).expect_err("refused");
    let echo = ExpectSpec { echo: true, ..ExpectSpec::default() };
    let (key, why) = fails(AnySpec { expect: echo, ..spec("loadline.rpc.v1.Table/Who") });
    assert_eq!(key, "expect.echo");
    assert!(why.contains("returns loadline.rpc.v1.Place"), "{why}");
    let (key, why) = fails(AnySpec { expect: fields("valu", "1"), ..spec(ADD) });
    assert_eq!(key, "expect.fields.valu");
    assert!(why.contains("has no field valu: it has value"), "{why}");
    let message = Some(r#"{"valu": 1}"#.to_owned());
    let (key, why) = fails(AnySpec { message, ..spec(ADD) });
    assert_eq!(key, "message");
    assert!(why.contains("valu") && why.contains("column"), "{why}");
}

#[test]
fn a_stated_message_that_is_sent_too_often_is_refused() {
    let method = "grpc.testing.TestService/StreamingInputCall";
    let message = Some(format!(r#"{{"payload": {{"body": "{}"}}}}"#, "A".repeat(1_000)));
    let plan = Plan::new(AnySpec { message, ..spec(method) }, None, 500_000, 7);
    let wrong = plan.any(&schema().method(method).expect("a method")).expect_err("375 MB");
    let words = "all take more than 268435456 bytes of memory: have fewer or smaller ones";
    assert_eq!(wrong, ("message".to_owned(), words.to_owned()));
}

#[test]
fn messages_that_are_kept_count_with_what_they_take_in_memory() {
    let method = "grpc.testing.TestService/FullDuplexCall";
    let descriptor = schema().method(method).expect("a method");
    let plan = |expect| Plan::new(AnySpec { expect, ..spec(method) }, Some(1), 100, 7);
    // 300 messages of some hundred bytes each, which have several nodes of fields.
    let most = 200_000;
    let made = plan(ExpectSpec::default()).within(most).any(&descriptor);
    let bytes: usize = made.expect("bytes alone are kept").requests.iter().map(Bytes::len).sum();
    assert!(bytes < most, "{bytes}");
    let kept = fields("payload.body", "request.payload.body");
    let wrong = plan(kept).within(most).any(&descriptor).expect_err("too much");
    let words = "all take more than 200000 bytes of memory: have fewer or smaller ones";
    assert_eq!(wrong, ("requests".to_owned(), words.to_owned()));
}

#[test]
fn a_stated_message_that_is_sent_often_is_kept_once() {
    let method = "grpc.testing.TestService/FullDuplexCall";
    let message = Some(r#"{"payload": {"body": "Bw=="}}"#.to_owned());
    let expect = fields("payload.body", "request.payload.body");
    let plan = Plan::new(AnySpec { message, expect, ..spec(method) }, None, 500_000, 7);
    let made = plan.any(&schema().method(method).expect("a method")).expect("a plan");
    assert_eq!(made.requests[0].len(), 500_000 * (5 + 5));
    let right = prefixed(&[10, 3, 18, 1, 7]);
    assert_eq!(made.check.check(0, &right.repeat(3)), Checked::Right);
}

#[test]
fn a_suite_that_is_wrong_says_where() {
    let fails = |text: &str| {
        let text = format!("service = 'rpc'\noperation = 'call'\n{text}");
        let error = Scenario::parse(&text, &SERVICE).expect_err("refused");
        (error.key.to_string(), error.message)
    };
    let files =
        format!("proto = '{0}/loadline/rpc/v1/table.proto'\nimports = ['{0}']\n", root().display());
    for (text, key, why) in [
        (String::new(), "workload.operation", "say method ="),
        ("method = 'Echo'".to_owned(), "workload.method", "write package.Service/Method"),
        ("requests = 3".to_owned(), "workload.method", "the operation call needs one"),
        (format!("{files}method = 'a.B/C'"), "workload.method", "there is no service a.B"),
        (format!("{files}method = '{ADD}'\nrequests = 0"), "workload.requests", "from 1 to 4096"),
        ("method = 'a.B/C'\nproto = 'none.proto'".to_owned(), "workload.proto", "none.proto"),
        (
            format!("{files}method = '{ADD}'\nexpect = {{ echo = true, message = '{{}}' }}"),
            "workload.expect",
            "compared with one thing",
        ),
        (
            format!("method = '{ADD}'\nexpect.fields.value = 'request.value +'"),
            "workload.expect.fields.value",
            "it ends early",
        ),
        (
            format!("{files}method = '{ADD}'\nexpect.fields.value = 'request.x'"),
            "workload.expect.fields.value",
            "has no field x: it has value",
        ),
    ] {
        let (found, message) = fails(&text);
        assert_eq!((&found[..], message.contains(why)), (key, true), "{text}: {message}");
    }
}

#[test]
fn any_generated_request_is_a_message_of_its_type() {
    let made = any(spec(ECHO)).expect("a plan");
    for request in &made.requests {
        let read = DynamicMessage::decode(sample(), &request[5..]).expect("a Sample");
        assert_eq!(read.unknown_fields().count(), 0);
        assert!(read.encoded_len() > 100);
    }
}
