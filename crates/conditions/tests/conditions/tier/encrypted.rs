//! PostgreSQL and S3 over encrypted connections.

use super::place::{Authorities, Place};
use crate::served::{folder, get, insert};

#[test]
fn what_goes_to_postgresql_and_s3_is_encrypted_and_only_to_whom_an_authority_vouches_for() {
    let Some(place) = Place::encrypted() else { return };
    let (killed, at) = place.start("a", 3_000);
    folder(at, "/a", "single");
    let mut number = 0;
    while place.sealed() == 0 {
        insert(at, "/a", number % 3, (u64::from(number), None), f64::from(number));
        number += 1;
    }
    let sessions = "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl
        JOIN pg_stat_activity USING (pid) WHERE application_name = 'loadline conditions'";
    let row = place.postgres().query_one(sessions, &[]).expect("an answer");
    let (all, encrypted): (i64, i64) = (row.get(0), row.get(1));
    assert!(all > 0 && all == encrypted, "{encrypted} of {all}");
    let before = get(at, "/api/v1/browse?folder=/a", &[]).body;
    drop(killed);
    place.lose("a");
    let (_killed, at) = place.start("a", 3_000);
    assert!(get(at, "/api/v1/browse?folder=/a", &[]).body == before, "fetched again");

    let Authorities { metadata, endpoint } = place.authorities();
    let swapped = Authorities { metadata: endpoint.clone(), endpoint: endpoint.clone() };
    let said = place.refused_with(&swapped);
    assert!(said.contains("--metadata") && said.contains("certificate"), "{said}");
    let swapped = Authorities { metadata: metadata.clone(), endpoint: metadata };
    let said = place.refused_with(&swapped);
    assert!(said.contains("--segments"), "{said}");
}
