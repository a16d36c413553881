//! What the service says of itself to programs.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::served::{get, post, serve};

/// The names of a request's parameters in its query.
fn described(document: &Json, request: &Json) -> BTreeSet<String> {
    let list = request["parameters"].as_array().into_iter().flatten();
    let whole = list.map(|one| match one["$ref"].as_str() {
        Some(place) => document.pointer(&place[1..]).expect("it is there").clone(),
        None => one.clone(),
    });
    let of_query = whole.filter(|one| one["in"] == "query");
    of_query.map(|one| one["name"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn every_request_takes_the_method_and_the_parameters_that_it_is_described_with() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let document = get(at, "/api/v1/openapi.json", &[]);
    assert_eq!((document.status, document.header("content-type")), (200, "application/json"));
    let document = document.json();
    let paths = document["paths"].as_object().expect("an object");
    let mut requests = 0;
    for (path, methods) in paths {
        let place = path.replace("{revision}", "0").replace("{since}", "0");
        for method in ["get", "post"] {
            let url = format!("/api/v1{place}?no=1");
            let answer = match method {
                "get" => get(at, &url, &[]),
                _ => post(at, &place, &[("content-type", "no/thing")], b"{}"),
            };
            let Some(request) = methods.get(method) else {
                assert_eq!(answer.status, 405, "{method} {path}");
                continue;
            };
            requests += 1;
            if method == "post" {
                assert_eq!(answer.status, 415, "{path}");
                let fix = answer.json()["fix"].as_str().expect("text").to_owned();
                for (kind, _) in request["requestBody"]["content"].as_object().expect("types") {
                    assert!(fix.contains(kind), "{path}: {fix}");
                }
                continue;
            }
            let expected = described(&document, request);
            if path == "/openapi.json" {
                continue;
            }
            assert_eq!(answer.status, 400, "{path}");
            let error = answer.json()["error"].as_str().expect("text").to_owned();
            let (_, list) = error.split_once("there are ").expect("a list");
            let taken: BTreeSet<String> =
                list.split(", ").filter(|name| *name != "none").map(str::to_owned).collect();
            assert_eq!(taken, expected, "{path}");
        }
    }
    assert!(requests >= 20, "{requests} requests");
    // Whatever is referred to is there.
    let text = document.to_string();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let place = part.split('"').next().expect("an end");
        assert!(document.pointer(place).is_some(), "{place}");
    }
}
