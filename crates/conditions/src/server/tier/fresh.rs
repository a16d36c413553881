//! How new a server's answers have to be, before any handler sees a request. Control plane.
//!
//! What names a revision that the server knows is answered from what it has, whether PostgreSQL can
//! be reached or not; one that it doesn't know yet is asked for first. A question of the head is
//! answered as long as the head was known a moment ago. A change is checked against the head.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State as Extract};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

use super::groups::Contact;
use crate::model::{Refusal, Revision};
use crate::protocol::{BASE, REVISION};
use crate::server::app::App;
use crate::server::fault::Fault;

/// How old the head may be that is answered; it is asked for every 0.1 s.
const HEAD_AGE: Duration = Duration::from_secs(5);

/// How long other servers' changes are waited for.
const FOLLOW_WITHIN: Duration = Duration::from_secs(5);

/// Has every answer of a router be as new as it has to be.
pub(in crate::server) fn layer(router: Router, app: &Arc<App>, contact: &Arc<Contact>) -> Router {
    let shared = (Arc::clone(app), Arc::clone(contact));
    router.layer(from_fn_with_state(shared, fresh))
}

async fn fresh(
    Extract((app, contact)): Extract<(Arc<App>, Arc<Contact>)>,
    request: Request,
    next: Next,
) -> Response {
    let needed = Needed::of(request.method(), request.uri(), request.headers());
    let brought = match needed {
        Ok(needed) => bring(&app, &contact, needed).await,
        Err(fault) => Err(fault),
    };
    match brought {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.into_response(),
    }
}

/// The last revision that this server knows.
async fn known(app: &Arc<App>) -> Result<Revision, Fault> {
    let known = app.state.try_read().map(|state| state.revision());
    match known {
        Some(known) => Ok(known),
        None => app.blocking(|app| Ok(app.state.read().revision())).await,
    }
}

async fn bring(app: &Arc<App>, contact: &Contact, needed: Needed) -> Result<(), Fault> {
    match needed {
        Needed::Nothing => return Ok(()),
        Needed::Head if contact.age() <= HEAD_AGE => return Ok(()),
        Needed::Head | Needed::Now => {}
        Needed::Revision(revision) if revision <= known(app).await? => return Ok(()),
        Needed::Revision(_) => {}
    }
    let followed = tokio::time::timeout(FOLLOW_WITHIN, app.writer.follow()).await;
    followed.unwrap_or_else(|_| Err("PostgreSQL doesn't answer".to_owned())).map_err(|why| {
        let error = format!("what other servers have changed isn't known: {why}");
        let fix = match needed {
            Needed::Now => "nothing was changed: make the change again later",
            _ => "ask again later, or ask a revision that this server knows",
        };
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, error, fix)
    })?;
    match needed {
        // A client may have seen it in another store, or before changes were lost.
        Needed::Revision(revision) => match known(app).await? {
            known if revision > known => Err(Refusal::NoRevision(revision, known).into()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// What a server has to know before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Nothing,
    /// All changes through this one.
    Revision(Revision),
    /// The head of a moment ago.
    Head,
    /// The head as it is now.
    Now,
}

impl Needed {
    fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Self, Fault> {
        if ["/metrics", "/api/v1/openapi.json"].contains(&uri.path()) {
            return Ok(Self::Nothing);
        }
        if ![Method::GET, Method::HEAD].contains(method) {
            return Ok(Self::Now);
        }
        // A client states what it has seen, whatever server has answered it.
        let read = |seen: &HeaderValue| seen.to_str().ok()?.parse().ok();
        let bad =
            || Fault::bad(format!("{REVISION} is no revision"), "it is a number of 0 or more");
        let seen = headers.get(REVISION).map(|seen| read(seen).ok_or_else(bad)).transpose()?;
        Ok(match (Self::pinned(uri), seen) {
            (Some(revision), seen) => Self::Revision(revision.max(seen.unwrap_or(0))),
            (None, Some(seen)) => Self::Revision(seen),
            (None, None) => Self::Head,
        })
    }

    /// The newest revision that a request names, if all that it asks is of revisions.
    fn pinned(uri: &Uri) -> Option<Revision> {
        let path = uri.path().strip_prefix(BASE)?;
        if let Some(slice) = path.strip_prefix("/slice/") {
            return slice.split('/').next()?.parse().ok();
        }
        let named = |name: &str| {
            let pairs = uri.query().unwrap_or("").split('&');
            pairs.filter_map(|pair| pair.strip_prefix(name)?.parse::<Revision>().ok()).max()
        };
        // What a tag's name or a channel's stands for is of now; and a key may be spelt otherwise.
        let is_of_now = |pair: &str| {
            let key = pair.split('=').next().unwrap_or_default();
            key.ends_with("tag") || key == "names" || key.contains(['%', '+'])
        };
        if uri.query().unwrap_or("").split('&').any(is_of_now) {
            return None;
        }
        let revision = named("revision=")?;
        match path {
            "/diff" => Some(revision.max(named("to_revision=")?)),
            _ => Some(revision),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_revision_needs_no_more_than_that() {
        let of = |method: Method, uri: &str, seen: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(seen) = seen {
                headers.insert(REVISION, seen.parse().expect("a value"));
            }
            Needed::of(&method, &uri.parse().expect("a path"), &headers).ok()
        };
        let of = |method, uri, seen| of(method, uri, seen).expect("a need");
        let get = |uri| of(Method::GET, uri, None);
        assert_eq!(get("/api/v1/slice/17/5?under=/a"), Needed::Revision(17));
        assert_eq!(get("/api/v1/find?folder=/a&t=1&revision=9"), Needed::Revision(9));
        assert_eq!(get("/api/v1/find?folder=/a&t=1"), Needed::Head);
        assert_eq!(get("/api/v1/diff?revision=2&to_revision=7"), Needed::Revision(7));
        assert_eq!(get("/api/v1/diff?revision=2"), Needed::Head);
        for of_now in [
            "/api/v1/find?folder=/a&t=1&revision=9&tag=x",
            "/api/v1/find?folder=/a&t=1&revision=9&t%61g=x",
            "/api/v1/find?folder=/a&t=1&revision=9&names=a",
        ] {
            assert_eq!(get(of_now), Needed::Head, "{of_now}");
        }
        assert_eq!(get("/api/cdb_rest/payloadiovs/?revision=3"), Needed::Head);
        assert_eq!(get("/metrics"), Needed::Nothing);
        assert_eq!(of(Method::GET, "/api/v1/folders", Some("12")), Needed::Revision(12));
        assert_eq!(of(Method::POST, "/api/v1/objects", None), Needed::Now);
        assert_eq!(of(Method::PUT, "/upload/key", None), Needed::Now);
        let mut headers = HeaderMap::new();
        for seen in ["", "x", "-1", "18446744073709551616"] {
            headers.insert(REVISION, HeaderValue::from_static(seen));
            let uri = Uri::from_static("/api/v1/folders");
            assert!(Needed::of(&Method::GET, &uri, &headers).is_err(), "{seen:?}");
        }
    }
}
