//! `POST /compact`: seals what came so far, and puts together what earlier seals have left in small
//! segments.

use std::sync::Arc;

use axum::extract::{Request, State as Extract};
use axum::http::StatusCode;
use axum::response::Response;

use super::app::App;
use super::fault::{Fault, json};
use super::writes::body;
use crate::protocol::{CompactBody, CompactedBody};

/// Answered once it is done. A client that goes away ends nothing of it.
pub(super) async fn compact(
    Extract(app): Extract<Arc<App>>,
    request: Request,
) -> Result<Response, Fault> {
    let compacted = try_compact(&app, request).await;
    app.answered(compacted)
}

async fn try_compact(app: &Arc<App>, request: Request) -> Result<Response, Fault> {
    let CompactBody {} = body(app, request).await?;
    let size = async || app.blocking(|app| Ok(app.state.read().sealed_size())).await;
    let (segments_before, bytes_before) = size().await?;
    app.writer.compact().await.map_err(|why| {
        let (error, fix) = (format!("nothing is compacted: {why}"), "all is as it was: ask again");
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, error, fix)
    })?;
    let (segments, bytes) = size().await?;
    let body = CompactedBody { segments_before, bytes_before, segments, bytes };
    Ok(json(StatusCode::OK, &body))
}
