//! Questions and changes over HTTP.

use std::sync::Barrier;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conditions::model::{ColumnSpec, Kind, Object, Value};
use conditions::protocol::{Bulk, INSERT_TYPE, decode_slice, encode_insert};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::served::{change, client, folder, get, insert, post, serve};

#[test]
fn every_time_of_an_interval_leads_to_one_slice_that_is_kept_for_ever() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "single");
    folder(at, "/det/b", "multi");
    folder(at, "/other", "single");
    for start in [0, 10, 20] {
        insert(at, "/det/a", 1, (start, None), start as f64);
    }
    insert(at, "/det/b", 7, (5, Some(15)), 0.5);
    let lead = |time: u64, more: &str| {
        let led = get(at, &format!("/api/v1/slice?t={time}&under=/det{more}"), &[]);
        assert_eq!(led.status, 307, "{led:?}");
        led.header("location").to_owned()
    };
    let ten = lead(10, "");
    assert_eq!(ten, lead(14, ""));
    assert!(ten != lead(9, "") && ten != lead(15, ""));
    for (time, until) in [(0, "5"), (9, "10"), (14, "15"), (15, "20"), (20, "9223372036854775807")]
    {
        for more in ["", "&redirect=false"] {
            let led = get(at, &format!("/api/v1/slice?t={time}&under=/det{more}"), &[]);
            assert_eq!(led.header("conditions-valid-until"), until, "{time}{more}");
        }
    }
    let slice = get(at, &ten, &[]);
    assert_eq!((slice.status, slice.header("content-type")), (200, "application/json"));
    assert_eq!(slice.header("cache-control"), "public, max-age=31536000, immutable");
    let digest = STANDARD.encode(Sha256::digest(&slice.body));
    assert_eq!(slice.header("repr-digest"), format!("sha-256=:{digest}:"));
    assert_eq!(slice.header("content-digest"), slice.header("repr-digest"));
    let tag = slice.header("etag");
    let again = get(at, &ten, &[("if-none-match", &format!("\"x\", {tag}"))]);
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, tag));
    assert_eq!(get(at, &ten, &[("if-none-match", "\"x\", \"y\"")]).status, 200);
    let columns = json!([{ "name": "value", "kind": "float" }]);
    let object = |channel, since, until, value| {
        let records = json!([[value]]);
        json!({ "channel": channel, "since": since, "until": until, "records": records })
    };
    let expected = json!([
        { "folder": "/det/a", "columns": columns, "objects": [object(1, 10, 20, 10.0)] },
        { "folder": "/det/b", "columns": columns, "objects": [object(7, 5, 15, 0.5)] },
    ]);
    assert_eq!(slice.json()["folders"], expected);
    // What is inserted elsewhere leaves the place as it is; what is inserted there does not.
    insert(at, "/det/a", 1, (30, None), 30.0);
    insert(at, "/other", 1, (0, None), 1.0);
    assert_eq!(ten, lead(12, ""));
    change(at, "/tags", &json!({ "name": "before", "path": "/det" }));
    insert(at, "/det/b", 7, (12, Some(13)), 0.75);
    assert!(ten != lead(12, ""));
    assert_eq!(ten, lead(12, "&tag=before"));
    assert_eq!(get(at, &ten, &[]).body, slice.body);
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_slice_is_sent_at_once_where_no_redirect_is_wanted() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "single");
    insert(at, "/det/a", 1, (10, None), 1.5);
    for more in ["", "&under=/det", "&format=binary", "&revision=2", "&as_of=1999-01-01T00:00:00Z"]
    {
        let asked = format!("/api/v1/slice?t=14{more}");
        let led = get(at, &asked, &[]);
        assert_eq!(led.status, 307, "{led:?}");
        assert_eq!(get(at, &format!("{asked}&redirect=true"), &[]).status, 307);
        let place = get(at, led.header("location"), &[]);
        let sent = get(at, &format!("{asked}&redirect=false"), &[]);
        assert_eq!((sent.status, &sent.body), (200, &place.body), "{more}");
        assert_eq!(sent.header("content-location"), led.header("location"));
        // For as long as the time leads there, not as the place itself.
        for name in ["cache-control", "conditions-revision"] {
            assert_eq!(sent.header(name), led.header(name), "{more} {name}");
        }
        for name in ["etag", "content-type", "content-digest", "repr-digest"] {
            assert!(!sent.header(name).is_empty());
            assert_eq!(sent.header(name), place.header(name), "{more} {name}");
        }
        let known = [("if-none-match", sent.header("etag"))];
        let again = get(at, &format!("{asked}&redirect=false"), &known);
        assert_eq!((again.status, again.body.len()), (304, 0));
        for name in ["etag", "cache-control", "content-location"] {
            assert_eq!(again.header(name), sent.header(name), "{more} {name}");
        }
    }
    let slice = client(at).slice(&[("t", "14".to_owned())]).expect("a slice");
    let objects: serde_json::Value = serde_json::from_slice(&slice.body).expect("JSON");
    assert_eq!(objects["folders"][0]["objects"][0]["records"], json!([[1.5]]));
}

#[test]
fn simultaneous_questions_of_a_new_slice_have_it_made_once() {
    const CLIENTS: usize = 30;
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/many", "single");
    for since in [10, 20] {
        // Too many for the thread of connections, so that two threads may be asked at once.
        let object = |channel| json!({ "channel": channel, "since": since, "values": [since] });
        let objects: Vec<_> = (0..3_000).map(object).collect();
        let batch = json!({ "folder": "/many", "objects": objects });
        change(at, "/objects", &json!({ "batches": [batch] }));
    }
    let led = get(at, "/api/v1/slice?t=10", &[]);
    let place = led.header("location");
    let counted = |name: &str| -> usize {
        let page = get(at, "/metrics", &[]).body;
        let page = String::from_utf8(page).expect("text");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.expect("a counter").parse().expect("a number")
    };
    let asked = [
        place.to_owned(),
        format!("{place}&format=binary"),
        "/api/v1/slice?t=25&redirect=false".to_owned(),
        "/api/v1/slice?t=25&redirect=false&format=binary".to_owned(),
    ];
    for (number, path) in asked.iter().enumerate() {
        let together = Barrier::new(CLIENTS);
        let bodies: Vec<_> = std::thread::scope(|scope| {
            let ask = || {
                together.wait();
                let answer = get(at, path, &[]);
                assert_eq!(answer.status, 200, "{path}");
                answer.body
            };
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
            clients.into_iter().map(|client| client.join().expect("no panic")).collect()
        });
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{path}");
        let sent = counted("conditions_slices_total");
        let made = sent - counted("conditions_slices_ready_total");
        assert_eq!((sent, made), (CLIENTS * (number + 1), number + 1), "{path}");
    }
}

#[test]
fn both_forms_of_a_slice_say_the_same_and_a_restart_changes_no_byte() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    let kinds = ["bool", "uint8", "int64", "double", "string", "blob"];
    let columns: Vec<_> = kinds.iter().map(|kind| json!({ "name": kind, "kind": kind })).collect();
    let body = json!({ "path": "/all", "versioning": "multi", "columns": columns });
    change(at, "/folders", &body);
    let records = json!([
        [true, 255, i64::MIN, 0.1, "é", "AAEC"],
        [null, null, null, null, null, null],
        { "double": "NaN", "string": "" },
    ]);
    let object = json!({ "channel": 3, "since": 1, "records": records });
    let batch = json!({ "folder": "/all", "objects": [object], "tag": "mine" });
    change(at, "/objects", &json!({ "batches": [batch] }));
    change(at, "/channels", &json!({ "folder": "/all", "channel": 3, "name": "third" }));
    let binary = [("t", "5".to_owned()), ("format", "binary".to_owned())];
    let bytes = client(at).slice(&binary).expect("a slice");
    let (_, folders) = decode_slice(&bytes.body).expect("the binary form");
    let named =
        [("folder", "/all".to_owned()), ("t", "5".to_owned()), ("names", "third".to_owned())];
    let found = client(at).get_json("/find", &named).expect("an answer");
    let shown = found["objects"][0]["records"].clone();
    assert_eq!(shown[0], records[0]);
    assert_eq!(shown[1], records[1]);
    assert_eq!(shown[2], json!([null, null, null, "NaN", "", null]));
    let row: Vec<_> =
        folders[0].payload.row(0).map(|value| conditions::protocol::cell_json(&value)).collect();
    assert_eq!(json!(row), records[0]);
    server.stop(Duration::from_secs(1));
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    assert_eq!(client(at).slice(&binary).expect("a slice").body, bytes.body);
    let tagged = [("folder", "/all".to_owned()), ("t", "5".to_owned()), ("tag", "mine".to_owned())];
    let found = client(at).get_json("/find", &tagged).expect("an answer");
    assert_eq!(found["objects"][0]["records"], shown);
}

#[test]
fn a_change_of_many_folders_is_made_whole_or_not_at_all() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    for name in ["/a", "/b"] {
        folder(at, name, "single");
    }
    insert(at, "/b", 2, (10, Some(20)), 1.0);
    let batch = |folder: &str, channels: &[u32], since: u64| {
        let until = since + 5;
        let object = |channel: &u32| {
            let values = [2.0];
            json!({ "channel": channel, "since": since, "until": until, "values": values })
        };
        let objects: Vec<_> = channels.iter().map(object).collect();
        json!({ "folder": folder, "objects": objects })
    };
    let both =
        |since| json!({ "batches": [batch("/a", &[1, 2, 3], since), batch("/b", &[1, 2], since)] });
    let json = [("content-type", "application/json")];
    let refused = post(at, "/objects", &json, both(16).to_string().as_bytes());
    assert_eq!(refused.status, 409);
    let said = refused.json();
    let error = said["error"].as_str().expect("text");
    assert!(
        error.contains("object [16, 21) of channel 2 meets [10, 20) in folder \"/b\""),
        "{error}"
    );
    let object = json!({ "folder": "/b", "place": 1, "channel": 2, "since": 16, "until": 21 });
    assert_eq!(said["object"], object);
    let count = |folder: &str| {
        let counted = client(at).get_json("/count", &[("folder", folder.to_owned())]);
        counted.expect("a number")["objects"].as_u64()
    };
    assert_eq!((count("/a"), count("/b")), (Some(0), Some(1)));
    change(at, "/objects", &both(20));
    assert_eq!((count("/a"), count("/b")), (Some(3), Some(3)));
    // Before what is there, many at once, in any order.
    change(at, "/objects", &json!({ "batches": [batch("/b", &[2], 5), batch("/b", &[2], 0)] }));
    let channels = [("folder", "/b".to_owned()), ("channels", "2".to_owned())];
    let found = client(at).get_json("/browse", &channels).expect("an answer");
    let starts: Vec<_> = found["objects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["since"].clone())
        .collect();
    assert_eq!(starts, [0, 5, 10, 20].map(|start| json!(start)));
}

#[test]
fn what_was_shown_is_found_by_revision_date_and_reason() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/m", "multi");
    let first = insert(at, "/m", 1, (0, Some(2)), 1.0);
    let second = insert(at, "/m", 1, (0, Some(1)), 2.0);
    let value = |time: u64, more: &[(&str, String)]| {
        let asked = [&[("folder", "/m".to_owned()), ("t", time.to_string())], more].concat();
        let found = client(at).get_json("/find", &asked).expect("an answer");
        found["objects"][0]["records"][0][0].as_f64()
    };
    assert_eq!((value(0, &[]), value(1, &[]), value(2, &[])), (Some(2.0), Some(1.0), None));
    assert_eq!(value(0, &[("revision", first.to_string())]), Some(1.0));
    assert_eq!(value(0, &[("as_of", jiff::Timestamp::now().to_string())]), Some(2.0));
    let why = [("folder", "/m".to_owned()), ("t", "1".to_owned())];
    let told = client(at).get_json("/explain", &why).expect("an answer");
    let shown = &told["channels"][0]["shown"];
    assert_eq!(
        (&shown["revision"], &shown["shown_from_revision"]),
        (&json!(first), &json!(second))
    );
    assert_eq!((&shown["since"], &shown["shown_since"]), (&json!(0), &json!(1)));
    // A tag as of the date of the first insertion shows what the head showed then.
    let inserted_us = shown["time_us"].as_i64().expect("a number");
    let date = |us| jiff::Timestamp::from_microsecond(us).expect("a date").to_string();
    for (name, us) in [("then", inserted_us), ("before", inserted_us - 1)] {
        change(at, "/tags", &json!({ "name": name, "path": "/m", "as_of": date(us) }));
    }
    let of_tag = |tag: &str| value(0, &[("tag", tag.to_owned())]);
    assert_eq!((of_tag("then"), of_tag("before")), (Some(1.0), None));
    let later = json!({ "name": "later", "path": "/m", "as_of": "2999-01-01T00:00:00Z" });
    let refused = client(at).post("/tags", &later).expect_err("it is in the future").to_string();
    assert!(refused.contains("2999-01-01T00:00:00Z is in the future: it is "), "{refused}");
}

#[test]
fn slashes_at_the_end_of_a_path_mean_nothing() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/m/", "multi");
    insert(at, "/det/m//", 1, (0, None), 1.0);
    change(at, "/tags", &json!({ "name": "t", "path": "/det/m/" }));
    let ask = |path, of: [(&str, &str); 2]| {
        let of = of.map(|(name, value)| (name, value.to_owned()));
        client(at).get_json(path, &of).expect(path)
    };
    for path in ["/det/m", "/det/m/", "/det/m//"] {
        let found = ask("/find", [("folder", path), ("t", "0")]);
        assert_eq!(found["objects"][0]["records"][0][0], 1.0);
        assert_eq!(ask("/count", [("folder", path), ("tag", "t")])["objects"], 1);
    }
    for path in ["/det", "/det/"] {
        let diff = ask("/diff", [("under", path), ("revision", "1")]);
        assert_eq!(diff["folders"][0]["folder"], "/det/m");
    }
}

#[test]
fn a_global_tag_shows_what_the_tags_show_that_it_picks() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    for name in ["/det/a", "/det/b", "/other"] {
        folder(at, name, "multi");
        insert(at, name, 1, (0, None), 1.0);
    }
    change(at, "/tags", &json!({ "name": "first", "path": "/det" }));
    for name in ["/det/a", "/det/b"] {
        insert(at, name, 1, (0, None), 2.0);
    }
    change(at, "/tags/clone", &json!({ "from": "first", "to": "first-too" }));
    change(at, "/tags", &json!({ "name": "second", "path": "/det/a" }));
    change(at, "/tags", &json!({ "name": "all", "path": "/", "picks": ["first", "second"] }));
    let lead = |tag: &str| {
        let led = get(at, &format!("/api/v1/slice?t=5&tag={tag}"), &[]);
        assert_eq!(led.status, 307, "{led:?}");
        led.header("location").to_owned()
    };
    let shown = |place: &str| {
        let slice = get(at, place, &[]).json();
        let folders = slice["folders"].as_array().expect("a list").clone();
        let one = |folder: serde_json::Value| {
            let value = folder["objects"][0]["records"][0][0].clone();
            (folder["folder"].as_str().expect("text").to_owned(), value)
        };
        folders.into_iter().map(one).collect::<Vec<_>>()
    };
    let pair = |folder: &str, value: f64| (folder.to_owned(), json!(value));
    let before = lead("all");
    assert_eq!(shown(&before), [pair("/det/a", 2.0), pair("/det/b", 1.0)]);
    assert_eq!(before, lead("all"));
    // What is picked elsewhere leads elsewhere, and what was there stays.
    change(at, "/tags", &json!({ "name": "third", "path": "/other" }));
    let pick = json!({ "name": "all", "picks": ["third"], "unpick": ["/det/a"] });
    change(at, "/tags/pick", &pick);
    let all = [pair("/det/a", 1.0), pair("/det/b", 1.0), pair("/other", 1.0)];
    assert_eq!(shown(&lead("all")), all);
    assert_eq!(shown(&before), [pair("/det/a", 2.0), pair("/det/b", 1.0)]);
    change(at, "/tags/clone", &json!({ "from": "all", "to": "copy" }));
    assert_eq!(shown(&lead("copy")), all);
    change(at, "/tags/lock", &json!({ "name": "all", "locked": true }));
    let refused = |path: &str, body: serde_json::Value, said: &str| {
        let json = [("content-type", "application/json")];
        let refused = post(at, path, &json, body.to_string().as_bytes());
        let text = refused.json()["error"].as_str().expect("text").to_owned();
        assert!(text.contains(said), "{path}: {text}");
        refused.status
    };
    let [third, all] = ["third", "all"].map(|name| json!({ "name": name }));
    assert_eq!(
        refused("/tags/delete", third, "picked by the global tag \"all\", which is locked"),
        409
    );
    assert_eq!(refused("/tags/delete", all, "\"all\" is locked"), 409);
    assert_eq!(refused("/tags/pick", pick, "\"all\" is locked"), 409);
    change(at, "/tags/lock", &json!({ "name": "all", "locked": false }));
    let third = json!({ "name": "third" });
    assert_eq!(refused("/tags/delete", third, "is picked by the global tag \"all\""), 409);
    let own = json!({ "name": "x", "path": "/det", "picks": ["all"] });
    assert_eq!(refused("/tags", own, "folders and sets below its own"), 409);
    let named = client(at).get_json("/tags", &[]).expect("an answer");
    let picks = &named["tags"][0]["picks"];
    assert_eq!(
        (&named["tags"][0]["name"], picks),
        (&json!("all"), &json!({ "/det": "first", "/other": "third" }))
    );
    let asked = [("folder", "/det/a".to_owned()), ("t", "5".to_owned()), ("tag", "all".to_owned())];
    let found = client(at).get_json("/find", &asked).expect("an answer");
    assert_eq!(found["objects"][0]["records"], json!([[1.0]]));
}

#[test]
fn an_explanation_names_the_tags_that_global_ones_pick() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "multi");
    insert(at, "/det/a", 1, (0, None), 1.0);
    change(at, "/tags", &json!({ "name": "own", "path": "/det/a" }));
    change(at, "/tags", &json!({ "name": "of-det", "path": "/det", "picks": ["own"] }));
    change(at, "/tags", &json!({ "name": "over", "path": "/", "picks": ["of-det"] }));
    for (tag, picked) in [
        ("over", vec!["of-det", "own"]),
        ("of-det", vec!["own"]),
        ("own", vec![]),
        ("HEAD", vec![]),
    ] {
        let asked = [("folder", "/det/a"), ("t", "5"), ("tag", tag)];
        let asked = asked.map(|(name, value)| (name, value.to_owned()));
        let told = client(at).get_json("/explain", &asked).expect("an answer");
        assert_eq!(told["picked"], json!(picked), "{tag}");
        assert_eq!(told["channels"][0]["shown"]["revision"], 2, "{tag}");
    }
}

#[test]
fn a_tag_that_was_picked_is_deleted_only_after_the_global_tag() {
    let data = tempfile::tempdir().expect("a folder");
    let mut server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/det/a", "multi");
    insert(at, "/det/a", 1, (0, None), 1.0);
    change(at, "/tags", &json!({ "name": "then", "path": "/det/a" }));
    insert(at, "/det/a", 1, (0, None), 2.0);
    change(at, "/tags", &json!({ "name": "now", "path": "/det/a" }));
    let picked = change(at, "/tags", &json!({ "name": "all", "path": "/", "picks": ["then"] }));
    change(at, "/tags/pick", &json!({ "name": "all", "picks": ["now"] }));
    let json = [("content-type", "application/json")];
    let deleted =
        |at, name| post(at, "/tags/delete", &json, json!({ "name": name }).to_string().as_bytes());
    let refused = deleted(at, "then");
    let said = format!("was picked by the global tag \"all\" until revision {picked}");
    assert_eq!(refused.status, 409);
    assert!(refused.json()["error"].as_str().is_some_and(|text| text.contains(&said)));
    for _ in 0..2 {
        let at = server.addresses()[0];
        let asked = format!("tag=all&revision={picked}");
        let slice = format!("/api/v1/slice?t=5&redirect=false&format=json&{asked}");
        let slice = get(at, &slice, &[]).json();
        assert_eq!(slice["folders"][0]["objects"][0]["records"], json!([[1.0]]));
        for path in ["find?t=5", "browse?since=0"] {
            let found = get(at, &format!("/api/v1/{path}&folder=/det/a&{asked}"), &[]).json();
            assert_eq!(found["objects"][0]["records"], json!([[1.0]]), "{path}");
        }
        drop(server);
        server = serve(data.path(), None);
    }
    let at = server.addresses()[0];
    assert_eq!(["all", "then"].map(|name| deleted(at, name).status), [200, 200]);
}

#[test]
fn the_binary_form_of_an_insertion_does_what_json_does() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/a", "multi");
    let columns = vec![ColumnSpec { name: "value".to_owned(), kind: Kind::Float }];
    let bulk = |tag: Option<&str>, only_tag| {
        let mut bulk = Bulk::new("/a", tag.map(str::to_owned), only_tag, columns.clone());
        for (channel, values) in [(1, &[0.5, f32::NAN][..]), (2, &[]), (3, &[1.5])] {
            let records = values.len() as u32;
            bulk.batch.objects.push(Object { channel, since: 7, until: 9, records });
            for value in values {
                let cell = Value::Float(*value);
                bulk.batch.payload.columns[0].push(&cell).expect("a float");
                bulk.batch.payload.rows += 1;
            }
        }
        bulk
    };
    let both = [bulk(None, false), bulk(Some("t"), true)];
    let revision = client(at).insert(&encode_insert(both.iter())).expect("inserted");
    let found = |more: &[(&str, &str)]| {
        let asked = [("folder", "/a"), ("t", "8")].iter().chain(more);
        let asked: Vec<_> = asked.map(|(name, value)| (*name, (*value).to_owned())).collect();
        client(at).get_json("/find", &asked).expect("an answer")["objects"].clone()
    };
    let expected = json!([
        { "channel": 1, "since": 7, "until": 9, "records": [[0.5], ["NaN"]] },
        { "channel": 2, "since": 7, "until": 9, "records": [] },
        { "channel": 3, "since": 7, "until": 9, "records": [[1.5]] },
    ]);
    assert_eq!(found(&[]), expected);
    assert_eq!(found(&[("tag", "t")]), expected);
    assert_eq!(
        found(&[("where", "value>=0.5"), ("where", "value<1")]),
        json!([
            { "channel": 1, "since": 7, "until": 9, "records": [[0.5]] },
        ])
    );
    assert_eq!(found(&[("where", "value is null")]), json!([]));
    // Nothing of it, where a part of it can't be read or its folder has other columns.
    let kind = [("content-type", INSERT_TYPE)];
    let bytes = encode_insert(both.iter());
    let said = post(at, "/objects", &kind, &bytes[..bytes.len() - 1]);
    assert_eq!(said.status, 400, "{said:?}");
    assert!(
        said.json()["error"].as_str().expect("text").starts_with("no insertion: wrong at byte")
    );
    change(
        at,
        "/columns",
        &json!({ "folder": "/a", "column": { "name": "more", "kind": "bool" } }),
    );
    assert_eq!(post(at, "/objects", &kind, &bytes).status, 409);
    assert_eq!(
        client(at)
            .get("/find", &[("folder", "/a".to_owned()), ("t", "8".to_owned())])
            .expect("an answer")
            .revision,
        Some(revision + 1)
    );
}

#[test]
fn a_compaction_is_answered_once_it_is_done_and_answers_stay() {
    let data = tempfile::tempdir().expect("a folder");
    let server = serve(data.path(), None);
    let at = server.addresses()[0];
    folder(at, "/a", "multi");
    let client = client(at);
    for round in 0..3 {
        insert(at, "/a", 1, (round, Some(round + 10)), 0.5);
        let done = client.compact().expect("done");
        assert!(done.segments >= 1 && done.bytes > 0, "{done:?}");
    }
    let asked = "/api/v1/browse?folder=/a";
    let before = get(at, asked, &[]).body;
    let again = client.compact().expect("done");
    assert_eq!((again.segments_before, again.segments), (1, 1));
    assert_eq!(get(at, asked, &[]).body, before);
    let refused = post(at, "/compact", &[("content-type", "application/json")], b"{\"x\":1}");
    assert_eq!(refused.status, 400);
    server.stop(Duration::from_secs(1));
}
