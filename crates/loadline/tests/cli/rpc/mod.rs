//! Calls under load: every server that is here answers the same calls rightly, a server that does
//! a call twice is found, and every suite of the service can be planned.

#[cfg(feature = "rpc")]
mod collected;
#[cfg(feature = "rpc")]
mod grpc;

use crate::common::{Place, plans_every_suite, repository, stdout};

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

/// What [`that_wants_a_token`] wants.
const TOKEN: &str = "a-token-of-16-bytes-and-more";

/// A file with [`TOKEN`].
fn tokens() -> tempfile::NamedTempFile {
    let tokens = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(tokens.path(), format!("{TOKEN}\n")).expect("written");
    tokens
}

/// Our server that answers those who have [`TOKEN`].
fn that_wants_a_token(name: &str, tokens: &tempfile::NamedTempFile, speaks: &str) -> String {
    format!(
        "[[target]]\nname = \"{name}\"\nserve = \"rpc\"\noptions = {{ token_file = {:?} }}\n\
         speaks = {{ {speaks} }}\n",
        tokens.path()
    )
}

/// Loads this server: no call is refused.
fn loaded_with_a_token(target: &str) {
    let rest = "mix = { unary = 1, add = 1 }\n[[clients]]\nconnections = 2\npipeline = 3\n\
                timeout = \"60s\"\n";
    for trial in answers_of(target, &[], rest) {
        assert_eq!(
            (&trial["validity"], &trial["refused"]),
            (&"valid".into(), &0.into()),
            "{trial:#}"
        );
    }
}

#[test]
fn a_server_that_wants_a_token_is_loaded_with_it_in_the_greeting() {
    let tokens = tokens();
    let speaks = format!("frames = {{ token = \"{TOKEN}\" }}");
    let frames = that_wants_a_token("frames", &tokens, &speaks);
    loaded_with_a_token(&frames);
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
