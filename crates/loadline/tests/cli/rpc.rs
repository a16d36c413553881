//! Calls under load: every server that is here answers the same calls rightly, a server that does
//! a call twice is found, and every suite of the service can be planned.

use crate::common::{Place, plans_every_suite, repository, stderr, stdout};

/// The peers that are here; those that aren't are named skips.
fn peers() -> Vec<(&'static str, Vec<String>)> {
    let here = |path: &str| repository().join(path).display().to_string();
    let tonic = vec![here("target/peers/tonic-server")];
    let grpcio = vec![here("target/venv/rpc/bin/python"), here("peers/grpcio/server.py")];
    let mut found = Vec::new();
    for (name, command, marker) in [
        ("tonic", tonic, "target/peers/tonic-server"),
        ("grpcio", grpcio, "target/venv/rpc/bin/python"),
    ] {
        match repository().join(marker).exists() {
            true => found.push((name, command)),
            false => testing::skip(format!("{name} is not installed (`cargo xtask peers`)")),
        }
    }
    found
}

/// Our server, where this program was built with gRPC.
const OURS: &str = if !cfg!(feature = "rpc") {
    ""
} else {
    "[[target]]\nname = \"loadline\"\nserve = \"rpc\"\noptions = { threads = 1 }\n"
};

/// The same by own frames, over TCP and a Unix socket.
const FRAMES: &str = "[[target]]\nname = \"frames\"\nserve = \"rpc\"\nspeaks = \"frames\"\n\
     [[target]]\nname = \"unix\"\nserve = \"rpc\"\nspeaks = \"frames\"\ntransport = \"unix\"\n";

/// A suite of one short round over our server, unless it is left out, and these peers; `rest` is
/// its workload and clients.
fn suite(ours: &str, peers: &[(&'static str, Vec<String>)], rest: &str) -> String {
    let target = |(name, command): &(&str, Vec<String>)| {
        let command = command.iter().map(|word| format!("{word:?}, ")).collect::<String>();
        format!(
            "[[target]]\nname = \"{name}\"\nspeaks = \"grpc\"\nready_within = \"60s\"\n\
             command = [{command}\"--port\", \"{{port}}\"]\n"
        )
    };
    let peers: String = peers.iter().map(target).collect();
    let rounds = "[rounds]\nmeasure = \"300ms\"\nslice = \"none\"\nwarm_up = \"50ms\"\n\
                  at_least = 1\nat_most = 1\ndisturbed = \"ignore\"\n";
    format!("title = \"Calls\"\n{ours}{peers}[workload]\nservice = \"rpc\"\n{rest}{rounds}")
}

fn answers_rightly(ours: &str, rest: &str) -> Vec<serde_json::Value> {
    answers_of(ours, &peers(), rest)
}

fn answers_of(
    ours: &str,
    peers: &[(&'static str, Vec<String>)],
    rest: &str,
) -> Vec<serde_json::Value> {
    if ours.is_empty() && peers.is_empty() {
        return Vec::new();
    }
    let trials = Place::with(&suite(ours, peers, rest)).trials();
    assert_eq!(trials.len(), ours.matches("[[target]]").count() + peers.len());
    assert!(trials.iter().all(|trial| trial["missing"] == 0), "{trials:#?}");
    trials
}

#[test]
fn calls_of_each_size_are_answered_byte_for_byte_and_totals_are_exact() {
    for bytes in [0, 1_000, 100_000] {
        let ours = format!("{OURS}{FRAMES}");
        answers_rightly(
            &ours,
            &format!(
                "mix = {{ unary = 3, add = 2 }}\nbytes = {bytes}\n[[clients]]\nconnections = 3\n\
             pipeline = 7\nthreads = 2\ntimeout = \"20s\"\n"
            ),
        );
    }
}

#[test]
fn the_cost_of_a_call_has_its_parts_among_the_floors() {
    let rest = "operation = \"unary\"\nbytes = 100\n[[clients]]\nconnections = 1\n\
                timeout = \"20s\"\n";
    let place = Place::with(&suite(FRAMES, &[], rest));
    let output = place.loadline(&["run", "suite.toml", "--json", "--wait", "--cost"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    for part in ["look-up_by_name", "look-up_by_number", "future", "encode_100_B", "decode_100_B"] {
        assert!(json["floors_ns"][part].as_f64() > Some(0.0), "{part}: {}", json["floors_ns"]);
    }
}

#[test]
fn calls_that_come_by_a_schedule_are_answered_rightly_whatever_others_take() {
    let trials = answers_rightly(
        OURS,
        "operation = \"unary\"\nbytes = 100\n[[clients]]\nconnections = 2\npipeline = 8\n\
         arrivals = { rate = \"500/s\", spacing = \"poisson\" }\ntimeout = \"20s\"\n",
    );
    for trial in trials {
        assert!(trial["operations"].as_u64() > Some(0), "{trial:#}");
        assert!(trial["offered_per_s"].as_f64() > Some(0.0), "it has a schedule: {trial:#}");
    }
}

#[test]
fn streams_bring_every_message_in_each_direction() {
    for (bytes, messages) in [(8, 300), (300_000, 5)] {
        for operation in ["server-stream", "client-stream", "bidi"] {
            let trials = answers_rightly(
                OURS,
                &format!(
                    "operation = \"{operation}\"\nbytes = {bytes}\nmessages = {messages}\n\
                 [[clients]]\nconnections = 2\npipeline = 2\ntimeout = \"20s\"\n"
                ),
            );
            for trial in trials {
                let elements = trial["elements_per_s"].as_f64().expect("a number");
                let rate = trial["rate_per_s"].as_f64().expect("a number");
                assert!((elements / rate / f64::from(messages) - 1.0).abs() < 1e-9, "{trial:#}");
            }
        }
    }
}

#[test]
fn gos_interoperability_server_streams_as_it_is_described() {
    let program = repository().join("target/peers/go/grpc-interop-server");
    if !program.exists() {
        testing::skip("grpc-interop-server is not installed (`cargo xtask peers`)");
        return;
    }
    let go = [("go", vec![program.display().to_string()])];
    for operation in ["server-stream", "client-stream", "bidi"] {
        let rest = format!(
            "operation = \"{operation}\"\nbytes = 30_000\nmessages = 9\n\
             [[clients]]\nconnections = 2\npipeline = 2\ntimeout = \"20s\"\n"
        );
        assert_eq!(answers_of("", &go, &rest).len(), 1);
    }
}

#[test]
fn any_method_is_called_from_its_schema_and_answers_are_compared_or_unchecked() {
    if OURS.is_empty() {
        return;
    }
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
fn a_server_that_wants_a_token_is_loaded_with_it_in_metadata_or_in_the_greeting() {
    let tokens = tempfile::NamedTempFile::new().expect("a file");
    let token = "a-token-of-16-bytes-and-more";
    std::fs::write(tokens.path(), format!("{token}\n")).expect("written");
    let target = |name: &str, speaks: &str| {
        format!(
            "[[target]]\nname = \"{name}\"\nserve = \"rpc\"\noptions = {{ token_file = {:?} }}\n\
             speaks = {{ {speaks} }}\n",
            tokens.path()
        )
    };
    let frames = target("frames", &format!("frames = {{ token = \"{token}\" }}"));
    let grpc = format!(
        "grpc = {{ metadata = {{ authorization = \"Bearer {token}\" }}, deadline = \"50s\" }}"
    );
    let grpc = if OURS.is_empty() { String::new() } else { target("grpc", &grpc) };
    let rest = "mix = { unary = 1, add = 1 }\n[[clients]]\nconnections = 2\npipeline = 3\n\
                timeout = \"60s\"\n";
    for trial in answers_of(&format!("{frames}{grpc}"), &[], rest) {
        assert_eq!(
            (&trial["validity"], &trial["refused"]),
            (&"valid".into(), &0.into()),
            "{trial:#}"
        );
    }
    if OURS.is_empty() {
        return;
    }
    // Without it each call is refused, and with a deadline that has passed before it comes.
    let rest = "operation = \"unary\"\n[[clients]]\nconnections = 1\ntimeout = \"60s\"\n";
    for (speaks, name) in [
        ("grpc = {}", "UNAUTHENTICATED"),
        (
            &format!(
                "grpc = {{ metadata = {{ authorization = \"Bearer {token}\" }}, \
                 deadline = \"1ns\" }}"
            ),
            "DEADLINE_EXCEEDED",
        ),
    ] {
        let place = Place::with(&suite(&target("grpc", speaks), &[], rest));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let (json, said) = (stdout(&output), stderr(&output));
        assert!(format!("{json}{said}").contains(name), "{speaks}: {json}{said}");
    }
    let place =
        Place::with(&suite(&target("grpc", "grpc = { metadata = { Te = \"x\" } }"), &[], rest));
    let said = stderr(&place.loadline(&["run", "suite.toml", "--wait"]));
    assert!(said.contains("speaks.grpc.metadata") || said.contains("suite.toml"), "{said}");
    assert!(said.contains("\"Te\" can't be sent"), "{said}");
}

#[test]
fn an_encrypted_server_is_loaded_where_its_certificate_is_trusted() {
    if OURS.is_empty() {
        return;
    }
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
        ("", "the target"),
    ] {
        let place = Place::with(&suite(&target("grpc", grpc), &[], rest));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let (json, said) = (stdout(&output), stderr(&output));
        assert!(format!("{json}{said}").contains(words), "{grpc}: {json}{said}");
    }
}

#[test]
fn an_answer_that_is_not_as_the_suite_says_is_wrong_and_no_schema_is_an_error() {
    if OURS.is_empty() {
        return;
    }
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

#[test]
fn a_server_that_does_a_call_twice_or_not_at_all_is_found() {
    let Some(grpcio) = peers().into_iter().find(|(name, _)| *name == "grpcio") else { return };
    for planted in ["--twice", "--not-at-all"] {
        let mut command = grpcio.1.clone();
        command.extend([planted.to_owned(), "10".to_owned()]);
        let clients = "operation = \"add\"\n[[clients]]\nconnections = 2\npipeline = 2\n\
                       timeout = \"20s\"\n";
        let place = Place::with(&suite("", &[("grpcio", command)], clients));
        let output = place.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let trial = &json["trials"][0];
        assert!(trial["wrong"].as_u64() > Some(0), "{planted}: {trial:#}");
        assert_eq!(trial["validity"], "invalid");
    }
}

#[test]
fn every_suite_of_the_service_can_be_planned() {
    // Codecs come with gRPC, and so do methods of a suite's own.
    let is_of_grpc = |name: &str| name.starts_with("rpc-codecs") || name == "rpc-calls-go.toml";
    let lacks = |name: &str| OURS.is_empty() && is_of_grpc(name);
    let is_ours = |name: &str| name.starts_with("rpc-") || name == "tour-rpc.toml";
    plans_every_suite(|name| is_ours(name) && !lacks(name), 14);
}
