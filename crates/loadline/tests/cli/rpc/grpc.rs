//! Calls by gRPC of what only a program with gRPC has: methods by their schema, metadata, TLS.

use super::{
    FRAMES, OURS, TOKEN, answers_of, answers_rightly, loaded_with_a_token, suite,
    that_wants_a_token, tokens,
};
use crate::common::{Place, repository, stderr, stdout};

#[test]
fn any_method_is_called_from_its_schema_and_answers_are_compared_or_unchecked() {
    let proto = format!(
        "proto = \"{0}/loadline/rpc/v1/table.proto\"\nimports = [\"{0}\"]\n",
        repository().join("crates/rpc/proto").display()
    );
    let clients = "[[clients]]\nconnections = 2\npipeline = 3\ntimeout = \"20s\"\n";
    for (method, expect, is_checked) in [
        ("Table/Echo", "expect.echo = true\n", true),
        ("Table/Add", "message = '{\"value\": 0}'\nexpect.message = '{}'\n", true),
        ("Table/Echo", "expect.fields.text = \"request.text\"\n", true),
        ("Table/Echo", "", false),
    ] {
        let workload =
            format!("operation = \"call\"\nmethod = \"loadline.rpc.v1.{method}\"\n{expect}");
        let ours = format!("{OURS}{FRAMES}");
        let trials = answers_rightly(&ours, &format!("{workload}{proto}{clients}"));
        for trial in trials {
            let (operations, unchecked) = (&trial["operations"], &trial["unchecked"]);
            let right = if is_checked { &serde_json::json!(0) } else { operations };
            assert_eq!(unchecked, right, "{workload}: {trial:#}");
        }
        // By its reflection; the peers here have none.
        let trials = Place::with(&suite(OURS, &[], &format!("{workload}{clients}"))).trials();
        assert_eq!(trials[0]["missing"], 0, "{workload}: {trials:#?}");
    }
}

#[test]
fn a_server_that_wants_a_token_is_loaded_with_it_in_metadata() {
    let tokens = tokens();
    let target = |speaks: &str| that_wants_a_token("grpc", &tokens, speaks);
    loaded_with_a_token(&target(&format!(
        "grpc = {{ metadata = {{ authorization = \"Bearer {TOKEN}\" }}, deadline = \"50s\" }}"
    )));
    // Without it each call is refused, and with a deadline that has passed before it comes.
    let rest = "operation = \"unary\"\n[[clients]]\nconnections = 1\ntimeout = \"60s\"\n";
    for (speaks, name) in [
        ("grpc = {}", "UNAUTHENTICATED"),
        (
            &format!(
                "grpc = {{ metadata = {{ authorization = \"Bearer {TOKEN}\" }}, \
                 deadline = \"1ns\" }}"
            ),
            "DEADLINE_EXCEEDED",
        ),
    ] {
        let place = Place::with(&suite(&target(speaks), &[], rest));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let (json, said) = (stdout(&output), stderr(&output));
        assert!(format!("{json}{said}").contains(name), "{speaks}: {json}{said}");
    }
    let place = Place::with(&suite(&target("grpc = { metadata = { Te = \"x\" } }"), &[], rest));
    let said = stderr(&place.loadline(&["run", "suite.toml", "--wait"]));
    assert!(said.contains("speaks.grpc.metadata") || said.contains("suite.toml"), "{said}");
    assert!(said.contains("\"Te\" can't be sent"), "{said}");
}

#[test]
fn an_encrypted_server_is_loaded_where_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["my.test".to_owned()]).expect("made");
    let [cert, key] = ["server.pem", "server.key"].map(|name| folder.path().join(name));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let target = |name: &str, grpc: &str| {
        format!(
            "[[target]]\nname = \"{name}\"\nserve = \"rpc\"\n\
             options = {{ tls_cert = {cert:?}, tls_key = {key:?} }}\n\
             speaks = {{ grpc = {{ {grpc} }} }}\n"
        )
    };
    let trusts = format!("tls = true, ca = {cert:?}");
    let ours = [
        target("authority", &format!("{trusts}, authority = \"my.test:443\"")),
        target("name", &format!("{trusts}, name = \"my.test\"")),
        target("any", "tls = true, insecure = true"),
    ];
    let rest = "mix = { unary = 2, add = 1, server-stream = 1, client-stream = 1, bidi = 1 }\n\
                bytes = 3_000\nmessages = 9\n[[clients]]\nconnections = 3\npipeline = 5\n\
                timeout = \"60s\"\n";
    for trial in answers_of(&ours.concat(), &[], rest) {
        assert_eq!(trial["validity"], "valid", "{trial:#}");
        assert!(trial["operations"].as_u64() > Some(0), "{trial:#}");
    }
    for (grpc, words) in [
        ("tls = true, name = \"my.test\"", "no authority that is trusted has signed"),
        (&trusts, "say the name that it has with name"),
        ("", "the server speaks TLS: in a suite, speaks = { grpc = { tls = true } }"),
    ] {
        let place = Place::with(&suite(&target("grpc", grpc), &[], rest));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let (json, said) = (stdout(&output), stderr(&output));
        assert!(format!("{json}{said}").contains(words), "{grpc}: {json}{said}");
    }
}

#[test]
fn an_answer_that_is_not_as_the_suite_says_is_wrong_and_no_schema_is_an_error() {
    let clients = "[[clients]]\nconnections = 1\n";
    let run = |workload: &str| {
        let place =
            Place::with(&suite(OURS, &[], &format!("operation = \"call\"\n{workload}{clients}")));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        (stdout(&output), stderr(&output))
    };
    let (json, _) = run("method = \"loadline.rpc.v1.Table/Echo\"\n\
                         expect.fields.small = \"request.small + 1\"\n");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["trials"][0]["wrong"].as_u64() > Some(0), "{json:#}");
    let (json, said) = run("method = \"a.b.C/D\"\n");
    assert!(format!("{json}{said}").contains("asked of the server's reflection"), "{json}{said}");
    let (_, said) = run("method = \"a.b.C/D\"\nproto = \"none.proto\"\n");
    assert!(said.contains("suite.toml") && said.contains("none.proto"), "{said}");
}
