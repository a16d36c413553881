//! What servers share is full: changes are refused, and say why.

use std::path::Path;
use std::time::{Duration, Instant};

use conditions::server::{BoundConditions, ConditionsServer, TierSettings};
use postgres::NoTls;
use serde_json::json;
use service::{Face, HttpSettings};

use crate::postgres_server::{Server, server};
use crate::served::{folder, insert, post};

/// Starts a server with segments in a directory.
fn start(
    postgres: &Server,
    folder: &Path,
    copies: &str,
    cache_bytes: u64,
) -> anyhow::Result<ConditionsServer> {
    let settings = TierSettings {
        metadata: format!("postgres://postgres@{}/postgres", postgres.address),
        password: None,
        metadata_authorities: None,
        segments: format!("file://{}/objects", folder.display()),
        endpoint: None,
        endpoint_authorities: None,
        cache_bytes,
    };
    let address = ([127, 0, 0, 1], 0).into();
    let http = HttpSettings { address, takes_names: false, tokens: None, face: Face::Api };
    let data = folder.join(copies);
    std::fs::create_dir_all(&data).expect("a folder");
    BoundConditions::bind(vec![http]).expect("an address").start_shared(&settings, &data)
}

#[test]
fn segments_that_have_no_room_at_a_server_never_count_there_and_it_says_why() {
    let Some(postgres) = server(&[]) else { return };
    let place = tempfile::tempdir().expect("a folder");
    let small = start(&postgres, place.path(), "small", 100).expect("nothing is sealed yet");
    let at = small.addresses()[0];
    folder(at, "/a", "multi");
    insert(at, "/a", 1, (0, None), 1.0);
    let refused = small.seal().expect_err("there is no room").to_string();
    assert!(refused.contains("--cache-size lets 100 be copied here"), "{refused}");

    // It goes on over what it has when another server has sealed, and names the reason.
    let large = start(&postgres, place.path(), "large", 1 << 30).expect("nothing counts yet");
    large.seal().expect("there is room");
    let begun = Instant::now();
    loop {
        let why = small.seal().expect_err("there is no room").to_string();
        if why.contains("the new snapshot is not loaded") && why.contains("--cache-size lets 100") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{why}");
        std::thread::yield_now();
    }
    let last = insert(at, "/a", 1, (5, None), 2.0);
    assert_eq!(insert(large.addresses()[0], "/a", 1, (6, None), 3.0), last + 1);
    drop(small);
    let refused = start(&postgres, place.path(), "small", 100).expect_err("there is no room");
    assert!(format!("{refused:#}").contains("start this server with more"), "{refused:#}");
    start(&postgres, place.path(), "small", 1 << 20).expect("there is room");
}

#[test]
fn a_full_postgresql_refuses_a_change_at_once_and_takes_the_next_one_once_there_is_room() {
    let Some(postgres) = server(&[]) else { return };
    let place = tempfile::tempdir().expect("a folder");
    let server = start(&postgres, place.path(), "a", 1 << 30).expect("a server");
    let at = server.addresses()[0];
    let last = folder(at, "/a", "multi");
    let text = format!("postgres://postgres@{}/postgres", postgres.address);
    let mut client = postgres::Client::connect(&text, NoTls).expect("a connection");
    let full = "
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device'
                USING ERRCODE = 'disk_full';
        END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON conditions_groups
            FOR EACH ROW EXECUTE FUNCTION full_disk()";
    client.batch_execute(full).expect("a trigger");
    let object = json!({ "channel": 1, "since": 0, "values": [1] });
    let body = json!({ "batches": [{ "folder": "/a", "objects": [object] }] }).to_string();
    let begun = Instant::now();
    let refused = post(at, "/objects", &[("content-type", "application/json")], body.as_bytes());
    assert!(begun.elapsed() < Duration::from_secs(50), "it waited");
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(refused.status, 503, "{said}");
    assert!(said.contains("nothing can be changed here: PostgreSQL has no room: could not extend"));
    client.batch_execute("DROP TRIGGER full_disk ON conditions_groups").expect("there is room");
    assert_eq!(insert(at, "/a", 1, (0, None), 1.0), last + 1);
}
