//! PostgreSQL as a peer: every dialect's answers at a real server, and a row that is wrong.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use conditions::load::{NOPAYLOADDB, SERVICE};
use load::{Caller, Op, Speaks};
use postgres::NoTls;
use wire::Address;

use crate::load::{SMALL, call, holds, holds_long, holds_nopayloaddb, nopayloaddb, workload};
use crate::postgres_server::server;

const MINIMAL: &[&str] = &["wal_level=minimal", "max_wal_senders=0"];

fn speaks(dialect: &str, options: &str) -> Speaks {
    let dialect = SERVICE.dialect(dialect).expect("a dialect");
    Speaks { dialect, options: options.parse().expect("TOML") }
}

/// What is prepared is read rightly; a value that is planted in the table is seen, and so is a
/// row that is missing.
fn is_held_against_the_seed(dialect: &str, plant: &str, options: &str) {
    let Some(server) = server(MINIMAL) else { return };
    let at = Address::Internet(server.address);
    let made = workload(SMALL, 7).expect("a workload");
    let spoken = speaks(dialect, options);
    let mut slot: Box<dyn Caller> = made.clone().caller(&spoken, &at).expect("a client");
    holds(&*made, &mut *slot);
    for operation in ["slice", "read-folders", "job", "browse"] {
        let (outcome, says) =
            (call(&mut *slot, operation, 1), options.contains("server_time = true"));
        assert_eq!(outcome.figures.len(), usize::from(says), "{operation}: {outcome:?}");
        let took = outcome.took.expect("a time").elapsed_ns as f64;
        let named = |(name, ns): &(String, f64)| name == "server_time_ns" && *ns > 0.0;
        assert!(outcome.figures.iter().all(named), "{outcome:?}");
        assert!(outcome.figures.iter().all(|(_, ns)| *ns < took), "{took}: {outcome:?}");
    }
    // Another slot has a channel of its own.
    let mut other = made.clone().caller(&spoken, &at).expect("a client");
    assert_eq!(call(&mut *other, "insert", 0).refused, 0);
    let text = format!("host=127.0.0.1 port={} user=postgres", server.address.port());
    let mut own = postgres::Client::connect(&text, NoTls).expect("a connection");
    let analysed = "SELECT count(*) FROM pg_stats WHERE tablename = 'conditions'";
    let analysed: i64 = own.query_one(analysed, &[]).expect("an answer").get(0);
    let is_wanted = !options.contains("analyze = false");
    assert_eq!(analysed > 0, is_wanted, "{analysed} columns are analysed");
    for statement in [plant, "DELETE FROM conditions WHERE folder = 2"] {
        assert!(own.execute(statement, &[]).expect("a change") > 0);
        for operation in ["slice", "read-folders"] {
            let outcome = call(&mut *slot, operation, 4);
            assert_eq!((outcome.answers, outcome.wrong), (1, 1), "{operation}: {outcome:?}");
        }
    }
}

const PLANT: &str = "UPDATE conditions SET v1 = v1 + 1 WHERE channel = 3 AND folder = 1";

#[test]
fn ranges_under_gist_are_held_against_the_seed() {
    is_held_against_the_seed("postgres-gist", PLANT, "");
}

#[test]
fn the_latest_rows_are_held_against_the_seed() {
    is_held_against_the_seed("postgres-lateral", PLANT, "server_time = true");
}

#[test]
fn vectors_are_held_against_the_seed() {
    let plant = "UPDATE conditions SET payload = set_byte(payload, 9, get_byte(payload, 9) # 1)";
    is_held_against_the_seed("postgres-vector", plant, "");
}

#[test]
fn the_naive_way_is_held_against_the_seed_without_statistics() {
    is_held_against_the_seed("postgres-naive", PLANT, "analyze = false");
}

#[test]
fn ranges_are_held_against_the_seed_without_an_index_and_in_order() {
    is_held_against_the_seed("postgres-gist", PLANT, "index = false\norder = true");
}

#[test]
fn a_lock_that_is_held_is_advised_first_and_without_it_the_statement_has_its_plan() {
    let Some(server) = server(MINIMAL) else { return };
    let at = Address::Internet(server.address);
    let (made, spoken) = (workload(SMALL, 7).expect("a workload"), speaks("postgres-lateral", ""));
    let mut slot = made.clone().caller(&spoken, &at).expect("a client");
    for part in 0..made.preparation().parts {
        assert_eq!(slot.prepare(part).expect("an answer").answers, 1);
    }
    let mut advisor = made.clone().advisor(&spoken, &at).expect("an advisor");
    let text = format!("host=127.0.0.1 port={} user=postgres", server.address.port());
    let mut own = postgres::Client::connect(&text, NoTls).expect("a connection");
    own.batch_execute("BEGIN; LOCK TABLE conditions").expect("a lock");
    let is_over = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&is_over);
    let reader = std::thread::spawn(move || {
        while !its.load(Relaxed) {
            assert_eq!(call(&mut *slot, "slice", 4).wrong, 0);
        }
    });
    let mut concluded = || {
        advisor.sample().expect("a sample");
        advisor.conclude().expect("a conclusion")
    };
    let locked = loop {
        let advice = concluded().advice;
        if advice.first().is_some_and(|first| first.code == "lock") {
            break advice[0].clone();
        }
    };
    assert_eq!(locked.wait, "Lock");
    let holder = "a transaction (idle in transaction) with AccessExclusiveLock on conditions holds \
                  it: BEGIN; LOCK TABLE conditions";
    assert!(locked.evidence.ends_with(holder), "{locked:?}");
    own.batch_execute("ROLLBACK").expect("no lock");
    let free = loop {
        let free = concluded();
        if free.statements.first().is_some_and(|first| first.plan.is_some()) {
            break free;
        }
    };
    is_over.store(true, Relaxed);
    reader.join().expect("right answers");
    assert!(free.version.is_some_and(|version| version.starts_with("PostgreSQL 1")));
    let plan = free.statements[0].plan.clone().expect("a plan");
    assert!(plan.starts_with("Nested Loop: 12 rows, "), "{plan}");
}

#[test]
fn an_option_that_is_none_is_refused() {
    let spoken = speaks("postgres-gist", "vacuum = true");
    let error = (spoken.dialect.check_options)(&spoken).expect_err("refused");
    assert!(error.to_string().contains("unknown field `vacuum`"), "{error}");
}

#[test]
fn ranges_keep_long_intervals_and_a_row_for_all_channels_does_not() {
    let Some(server) = server(MINIMAL) else { return };
    let at = Address::Internet(server.address);
    let spoken = speaks("postgres-gist", "");
    holds_long("infinite", |workload| workload.caller(&spoken, &at).expect("a client"));
    let long = workload(&format!("{SMALL}long = \"infinite\"\n"), 7).expect("a workload");
    let refused = long.caller(&speaks("postgres-vector", ""), &at).err().expect("refused");
    assert!(refused.to_string().contains("different lengths"), "{refused}");
}

#[test]
fn the_query_of_nopayloaddb_is_held_against_the_seed() {
    let Some(server) = server(MINIMAL) else { return };
    let at = Address::Internet(server.address);
    let spoken = Speaks::plainly(NOPAYLOADDB.dialect("postgres-nopayloaddb").expect("a dialect"));
    let made = nopayloaddb("tiny", 7);
    let mut slot = made.clone().caller(&spoken, &at).expect("a client");
    holds_nopayloaddb(&*made, &mut *slot);
    let text = format!("host=127.0.0.1 port={} user=postgres", server.address.port());
    let mut own = postgres::Client::connect(&text, NoTls).expect("a connection");
    let plant = r#"UPDATE "PayloadIOV" SET payload_url = 'x' WHERE payload_list_id = 3"#;
    for statement in [plant, r#"DELETE FROM "PayloadIOV" WHERE payload_list_id = 3"#] {
        assert_eq!(own.execute(statement, &[]).expect("a change"), 10);
        assert_eq!(slot.call(Op { operation: 0, what: 4 }).expect("an answer").wrong, 1);
    }
}
