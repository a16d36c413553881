//! Records under load: our server, and pvxs where it is built, answer the same operations rightly;
//! and every suite of the service can be planned.

use std::path::PathBuf;

use crate::common::{Place, plans_every_suite, repository};

/// pvxs's server, or a named skip where it is not built.
fn pvxs() -> Option<PathBuf> {
    let built = repository().join("target/peers/pvxs-server");
    if built.exists() {
        return Some(built);
    }
    testing::skip("pvxs-server is not installed (`cargo xtask peers` builds it)");
    None
}

const OURS: &str = r#"
[[target]]
name = "loadline"
serve = "records"
setup = ["sh", "-c", '''
for n in $(seq -f %07g 0 $(({workload.keys.count} - 1))); do
    printf '[[record]]\nname = "k%s"\ntype = "{parameters.type}"\n' $n
done > '{dir}/records.toml'
''']
options = { config = "{dir}/records.toml", no-search = true }
"#;

/// A suite of one short round; `rest` is its workload, clients and parameters.
fn suite(rest: &str, elements: u64) -> String {
    let theirs = pvxs().map_or_else(String::new, |pvxs| {
        format!(
            "[[target]]\nname = \"pvxs\"\nspeaks = \"pvaccess\"\ncommand = [{:?}, \"--port\", \
             \"{{port}}\", \"--records\", \"{{workload.keys.count}}\", \"--elements\", \
             \"{elements}\"]\n",
            pvxs.display().to_string()
        )
    });
    let rounds = "[rounds]\nmeasure = \"400ms\"\nslice = \"none\"\nwarm_up = \"50ms\"\n\
                  at_least = 1\nat_most = 1\ndisturbed = \"ignore\"\n";
    format!("title = \"Records\"\n{OURS}{theirs}{rest}{rounds}")
}

#[test]
fn every_operation_is_answered_rightly_by_our_server_and_by_pvxs() {
    let rest = "[workload]\nroom = \"records\"\nmix = { get = 6, put = 3, connect = 1 }\n\
                keys = { count = 10, bytes = 8 }\n[[clients]]\nconnections = 2\npipeline = 5\n\
                timeout = \"20s\"\n[parameters]\ntype = \"long\"\n";
    let trials = Place::with(&suite(rest, 0)).trials();
    assert!(trials.iter().all(|trial| trial["missing"] == 0));
}

#[test]
fn every_element_of_a_large_array_is_compared_and_counted() {
    let rest = "[workload]\nroom = \"records\"\nmix = { get = 1, put = 1 }\nsize = 300_000\n\
                keys = { count = 1, bytes = 8 }\n[[clients]]\ntimeout = \"20s\"\n\
                [parameters]\ntype = \"long[]\"\n";
    for trial in Place::with(&suite(rest, 300_000)).trials() {
        let elements = trial["elements_per_s"].as_f64().expect("a number");
        let rate = trial["rate_per_s"].as_f64().expect("a number");
        assert!((elements / rate / 300_000.0 - 1.0).abs() < 1e-9, "{trial:#}");
    }
}

#[test]
fn what_one_client_writes_others_are_told_in_order_with_its_age() {
    let rest = "[workload]\nroom = \"records\"\nmix = { put = 1, monitor = 1 }\n\
                keys = { count = 10, bytes = 8 }\n[[clients]]\nname = \"writer\"\n\
                arrivals = { rate = \"500/s\" }\ntimeout = \"20s\"\n[[clients]]\n\
                name = \"watchers\"\npipeline = 10\narrivals = \"subscribe\"\ntimeout = \"20s\"\n\
                [parameters]\ntype = \"long\"\n";
    for trial in Place::with(&suite(rest, 0)).trials() {
        assert_eq!((&trial["streams"], &trial["missing"]), (&10.into(), &0.into()), "{trial:#}");
        // What is missed is said by ours; pvxs never says it.
        let ours = trial["target"] == "loadline";
        assert!(!ours || trial["merged"] == trial["missed"], "{trial:#}");
        assert!(trial["staleness_ns"]["p50"].as_u64().expect("a number") > 0, "{trial:#}");
    }
}

#[test]
fn every_suite_of_the_service_can_be_planned() {
    plans_every_suite(|name| name.starts_with("records-") || name.starts_with("tour-"), 7);
}
