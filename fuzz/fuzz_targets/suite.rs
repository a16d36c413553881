//! Any text as a suite, alone or behind a good one: it is refused with an error that points into
//! it, or it is a plan whose operations can be drawn.
#![no_main]

use std::path::Path;

use lab::plan::{Registry, Plan, Point};
use libfuzzer_sys::fuzz_target;
use miette::Diagnostic;
use load::{Scenario, Service, Stream, Workload};
use wire::ProtocolError;

type Make = fn(&Scenario, &dyn Workload, u64, u64) -> Stream;

const GOOD: &str = "title = 't'\n[workload]\nservice = 'cache'\noperation = 'get'\n\
    keys = { count = 10 }\nvalue = { bytes = 16 }\n[[clients]]\nconnections = 2\n\
    [[target]]\nname = 'a'\nserve = 'cache'\n";

static SERVICES: &[&Service] =
    &[&cache::load::SERVICE, &records::load::SERVICE, &http::load::SERVICE, &load::null::SERVICE];

fuzz_target!(|data: &[u8]| {
    let Some((how, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = if how & 1 == 0 { text.to_owned() } else { format!("{GOOD}{text}") };
    let registry = Registry {
        services: SERVICES,
        check_arguments: &|_, _| Ok(()),
        default_of: |_, _| None,
        page: |_, _| Err(ProtocolError::new("no page")),
        may_miss: |_| true,
    };
    match Plan::parse(Path::new("suite.toml"), text.clone(), &[], registry) {
        Ok(plan) => {
            assert!(plan.shortest() <= plan.shortest_disturbed());
            let groups = |point: &Point| {
                let all = point.workload.clone();
                point.clients.clone().into_iter().map(move |group| group.scenario(&all))
            };
            for workload in plan.points.iter().flat_map(groups) {
                let (streams, calls) = workload.streams_and_calls();
                let make = [(streams, Stream::of_streams as Make), (calls, Stream::new)];
                for (_, make) in make.into_iter().filter(|(is_there, _)| *is_there) {
                    let begun = workload.begin();
                    let mut stream = make(&workload, &*begun, 1, 0);
                    (0..9).for_each(|_| _ = stream.next_op());
                }
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            for label in error.labels().into_iter().flatten() {
                assert!(label.offset() + label.len() <= text.len() + 1, "{error}");
            }
        }
    }
});
