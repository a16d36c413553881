//! The interface over HTTP. Control plane.

mod answer;
mod changes;
mod files;
mod query;
mod questions;
pub(crate) mod storage;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use crate::server::app::App;
use answer::Refusal;
use questions::question;

pub(crate) use query::quick;

use super::protocol::BASE;

/// Every request, a line each; those with two names have the older one first.
#[rustfmt::skip]
pub(crate) fn router() -> Router<Arc<App>> {
    use changes as c;
    use questions as q;
    let tags = || question(q::tags);
    let tag = || question(q::tag);
    let tag_lists = || question(q::lists_of_tag);
    let statuses = || question(q::statuses).merge(c::post(c::create_status));
    let types = || question(q::types).merge(c::post(c::create_type));
    let lists = || question(q::lists).merge(c::post(c::create_list));
    let list = || question(q::list);
    let iovs = || question(q::iovs).merge(c::post(c::create_iov));
    let iov = || question(q::iov);
    let setting = || question(q::setting);
    let query = || get(query::query);
    let delete_iov = || c::delete(c::delete_iov);
    let requests = Router::new()
        .route("/gt", question(q::tags_whole).merge(c::post(c::create_tag)))
        .route("/gt/{one}", question(q::tag_by_id))
        .route("/globalTags", tags()).route("/global-tags", tags())
        .route("/globalTag/{one}", tag()).route("/global-tags/{one}", tag())
        .route("/gtPayloadLists/{one}", tag_lists())
        .route("/global-tags/{one}/payload-lists", tag_lists())
        .route("/gtstatus", statuses()).route("/global-tags/statuses", statuses())
        .route("/gt_change_status/{one}/{two}", c::put(c::set_status))
        .route("/global-tags/{one}/change-status/{two}", c::put(c::set_status))
        .route("/cloneGlobalTag/{one}/{two}", c::post(c::clone_tag))
        .route("/global-tags/{one}/clone/{two}", c::post(c::clone_tag))
        .route("/deleteGlobalTag/{one}", c::delete(c::delete_tag))
        .route("/global-tags/{one}/delete", c::delete(c::delete_tag))
        .route("/pt", types()).route("/payload-types", types())
        .route("/deletePayloadType/{one}", c::delete(c::delete_type))
        .route("/payload-types/{one}/delete", c::delete(c::delete_type))
        .route("/pl", lists()).route("/payload-lists", lists())
        .route("/pl/{one}", list()).route("/payload-lists/{one}", list())
        .route("/payload-lists/by-name/{one}", question(q::list_by_name))
        .route("/pl_attach", c::put(c::attach_list))
        .route("/payload-lists/attach", c::put(c::attach_list))
        .route("/deletePayloadList/{one}", c::delete(c::delete_list))
        .route("/payload-lists/{one}/delete", c::delete(c::delete_list))
        .route("/piov", iovs()).route("/payload-iovs", iovs())
        .route("/piov/{one}", iov()).route("/payload-iovs/{one}", iov())
        .route("/bulk_piov", c::post(c::add_iovs)).route("/payload-iovs/bulk", c::post(c::add_iovs))
        .route("/piov_attach", c::put(c::attach_iov))
        .route("/payload-iovs/attach", c::put(c::attach_iov))
        .route("/payloadiovs", query()).route("/payloadiovs/", query())
        .route("/payload-iovs/query", query()).route("/payload-iovs/query/", query())
        .route("/deletePayloadIOV/{one}/{two}/{three}/{four}", delete_iov())
        .route("/deletePayloadIOV/{one}/{two}/{three}/{four}/{five}/{six}", delete_iov())
        .route("/payload-iovs/{one}/{two}/{three}/{four}/delete", delete_iov())
        .route("/payload-iovs/{one}/{two}/{three}/{four}/{five}/{six}/delete", delete_iov())
        .route("/settings/{one}", setting()).route("/settings/{one}/", setting())
        .route("/user_settings/{one}", setting()).route("/user_settings/{one}/", setting())
        .fallback(async || Refusal::detail(StatusCode::NOT_FOUND, "There is no such request."))
        .method_not_allowed_fallback(async || {
            Refusal::detail(StatusCode::METHOD_NOT_ALLOWED, "Not with this method.")
        });
    let other_method = async || {
        let detail = "Not with this method: PUT /upload/KEY sends, and GET /dbstore/KEY reads.";
        Refusal::detail(StatusCode::METHOD_NOT_ALLOWED, detail)
    };
    Router::new()
        .nest(BASE, requests)
        .route("/upload/{*key}", axum::routing::put(files::upload).fallback(other_method))
        .route("/dbstore/{*key}", get(files::download).fallback(other_method))
}
