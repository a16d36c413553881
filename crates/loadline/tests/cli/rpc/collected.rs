//! What the garbage collectors of other servers take, which they count themselves.

use std::process::Command;

use super::answers_of;
use crate::common::repository;

/// A server of Go prints one such line a collection.
const GO: &str =
    "gc 1 @0.018s 0%: 0.01+0.53+0.02 ms clock, 0.02+0.1/0.4/0.5+0.05 ms cpu, 3->4->1 MB
2026/01/01 00:00:00 gc is no such line
gc 2 @0.030s 1%: 0.01+0.50+0.02 ms clock, 1+0/2/0+0.5 ms cpu, 3->4->1 MB, 4 MB goal, 2 P
";

#[test]
fn collections_are_counted_with_the_cpu_time_of_all_their_parts() {
    let script = "import collected, gc, sys\n\
                  go = collected.of_go(sys.argv[1])\n\
                  own = collected.Collected()\n\
                  gc.callbacks.append(own.noted)\n\
                  gc.collect()\n\
                  print(go.collections, go.cpu_ns, own.collections, own.cpu_ns > 0)";
    let mut python = Command::new("python3");
    let python = python.args(["-c", script, GO]).env("PYTHONPATH", repository().join("peers"));
    let Ok(output) = python.env("PYTHONDONTWRITEBYTECODE", "1").output() else {
        testing::skip("python3 is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 4570000 1 True\n", "{output:?}");
}

/// The counters of a target that other places start, with what it counts at `page`.
fn has_collections(target: &str, page: &str) {
    let target = format!(
        "[[target]]\nname = \"peer\"\nspeaks = \"grpc\"\nready_within = \"60s\"\n\
         counters = \"http://{page}/\"\n{target}"
    );
    let rest = "operation = \"call\"\nmethod = \"grpc.testing.TestService/EmptyCall\"\n\
                proto = \"PROTO\"\n[[clients]]\nconnections = 1\ntimeout = \"20s\"\n";
    let proto = repository().join("crates/rpc/proto/grpc/testing/test.proto");
    let rest = rest.replace("PROTO", &proto.display().to_string());
    for trial in answers_of(&target, &[], &rest) {
        let counters = trial["counters"].as_array().expect("counters");
        let time = counters.iter().find(|one| one["name"] == "gc_cpu_ns_total");
        let time = time.unwrap_or_else(|| panic!("its collections are unseen: {trial:#}"));
        assert_eq!(time["grows"], true, "{trial:#}");
        let collections = counters.iter().find(|one| one["name"] == "gc_collections_total");
        let count = collections.and_then(|one| one["value"].as_f64());
        assert!(count.is_some_and(|count| count > 0.0), "nothing was collected: {trial:#}");
    }
}

#[test]
fn what_the_collector_of_a_server_takes_is_counted_beside_its_calls() {
    let root = repository();
    let [python, go] = ["target/venv/rpc/bin/python", "target/peers/go/grpc-interop-server"];
    let at = |path: &str| root.join(path).display().to_string();
    for (path, page, target) in [
        (
            python,
            "127.0.0.2:{port}".to_owned(),
            format!(
                "command = [{:?}, {:?}, \"--port\", \"{{port}}\", \"--collected\", \
                 \"127.0.0.2:{{port}}\"]\n",
                at(python),
                at("peers/grpcio/server.py")
            ),
        ),
        {
            let page = format!("127.0.0.1:{}", testing::free_port());
            let target = format!(
                "command = [{:?}, \"--port\", \"{{port}}\"]\nenv = {{ GODEBUG = \"gctrace=1\" }}\n\
                 setup = [\"python3\", {:?}, \"{{dir}}/stderr\", {page:?}]\n",
                at(go),
                at("peers/collected.py")
            );
            (go, page, target)
        },
    ] {
        match root.join(path).exists() {
            true => has_collections(&target, &page),
            false => testing::skip(format!("{path} is not installed (`cargo xtask peers`)")),
        }
    }
}
