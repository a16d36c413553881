//! The page for people: the tree as it is and as it changes, in three files that name no other
//! host. They are the same for everybody, and need no token; what they ask for may need one.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::routing::get;

/// What the page may do: run its own script, with its own styles, and ask this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
);

/// The paths of the page's files.
pub(super) const PATHS: [&str; 3] = ["/", "/app.js", "/style.css"];

const FILES: [(&str, &str); 3] = [
    ("text/html; charset=utf-8", include_str!("index.html")),
    ("text/javascript; charset=utf-8", include_str!("app.js")),
    ("text/css; charset=utf-8", include_str!("style.css")),
];

/// The page's files.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    PATHS.into_iter().zip(FILES).fold(Router::new(), |router, (path, (kind, text))| {
        let headers: [(HeaderName, HeaderValue); 2] = [
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (header::CONTENT_SECURITY_POLICY, POLICY),
        ];
        router.route(path, get(async move || (headers, text)))
    })
}
