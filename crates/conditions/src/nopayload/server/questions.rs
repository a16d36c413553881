//! Questions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query as UriQuery, State as Extract};
use axum::http::{StatusCode, Uri};
use axum::routing::{MethodRouter, get};
use serde_json::json;

use super::answer::{Refusal, bytes_of, json_of, read};
use crate::nopayload::model::{List, Nopayload};
use crate::nopayload::protocol::{
    IovListed, IovRow, IovView, ListDetail, ListListed, ListView, PageParams, Pairs, StatusView,
    TagDetail, TagListed, TooManyRows, TypeView, paged,
};
use crate::server::app::App;

/// What a request says besides its body: the variable parts of its path, and its parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    path: Vec<String>,
    pub(super) pairs: Pairs,
}

/// A path as axum takes it apart.
pub(super) type Parts = Result<Path<Vec<String>>, PathRejection>;

impl Asked {
    pub(super) fn of(path: Parts, uri: &Uri) -> Result<Self, Refusal> {
        let path = match path {
            Ok(Path(path)) => path,
            Err(PathRejection::MissingPathParams(_)) => Vec::new(),
            Err(_) => return Err(Refusal::bad("the path is no UTF-8")),
        };
        let pairs = UriQuery::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map_err(|_| Refusal::bad("the query can't be read"))?;
        Ok(Self { path, pairs: Pairs(pairs.0) })
    }

    /// A part of the path.
    pub(super) fn part(&self, place: usize) -> &str {
        self.path.get(place).map_or("", String::as_str)
    }

    pub(super) fn parts(&self) -> usize {
        self.path.len()
    }

    /// A number in the path.
    pub(super) fn number<N: std::str::FromStr>(&self, place: usize) -> Result<N, Refusal> {
        let part = self.part(place);
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| part.parse().ok()).flatten();
        number.ok_or_else(Refusal::not_found)
    }
}

/// What a question is answered.
pub(super) type Answer = Result<Vec<u8>, Refusal>;

/// The handler of a question.
pub(super) fn question(answer: fn(&Nopayload, &Asked) -> Answer) -> MethodRouter<Arc<App>> {
    get(async move |Extract(app): Extract<Arc<App>>, path: Parts, uri: Uri| {
        app.counts.reads.fetch_add(1, Relaxed);
        let asked = match Asked::of(path, &uri) {
            Ok(asked) => read(&app, |_| false, move |state| answer(state, &asked)).await,
            Err(refusal) => Ok(Err(refusal)),
        };
        let answered = asked.flatten().and_then(|bytes| json_of(&app, bytes));
        if answered.is_err() {
            app.counts.refused.fetch_add(1, Relaxed);
        }
        answered
    })
}

pub(super) fn tags(state: &Nopayload, asked: &Asked) -> Answer {
    let listed = |row| TagListed::of(state, row);
    let Some(page) = PageParams::read(&asked.pairs) else {
        return Ok(bytes_of(&state.tags().map(listed).collect::<Vec<_>>()));
    };
    let status = asked.pairs.filled("status");
    let wanted = state.tags().filter(|(_, tag)| status.is_none_or(|s| state.status_of(tag) == s));
    Ok(bytes_of(&paged(wanted.map(listed), &page, |row| row)))
}

pub(super) fn tags_whole(state: &Nopayload, _: &Asked) -> Answer {
    TooManyRows::check(state.tags().map(|(_, tag)| state.iovs_of_tag(tag)).sum())?;
    Ok(bytes_of(&state.tags().map(|row| TagDetail::of(state, row)).collect::<Vec<_>>()))
}

pub(super) fn tag(state: &Nopayload, asked: &Asked) -> Answer {
    let row = state.tag_named(asked.part(0)).ok_or_else(Refusal::not_found)?;
    if asked.pairs.get("light").is_some() {
        return Ok(bytes_of(&TagListed::of(state, row)));
    }
    TooManyRows::check(state.iovs_of_tag(row.1))?;
    Ok(bytes_of(&TagDetail::of(state, row)))
}

pub(super) fn tag_by_id(state: &Nopayload, asked: &Asked) -> Answer {
    let id = asked.number(0)?;
    let tag = state.tag(id).ok_or_else(Refusal::not_found)?;
    TooManyRows::check(state.iovs_of_tag(tag))?;
    Ok(bytes_of(&TagDetail::of(state, (id, tag))))
}

pub(super) fn lists_of_tag(state: &Nopayload, asked: &Asked) -> Answer {
    let mut lists = serde_json::Map::new();
    let tag = state.tag_named(asked.part(0));
    for (payload_type, list) in tag.iter().flat_map(|(_, tag)| &tag.lists) {
        let named = state.payload_type(*payload_type).zip(state.list(*list));
        lists.extend(named.map(|(of, list)| (of.name.clone(), json!(list.name))));
    }
    Ok(bytes_of(&lists))
}

pub(super) fn statuses(state: &Nopayload, _: &Asked) -> Answer {
    Ok(bytes_of(&state.statuses().map(StatusView::of).collect::<Vec<_>>()))
}

pub(super) fn types(state: &Nopayload, asked: &Asked) -> Answer {
    match PageParams::read(&asked.pairs) {
        Some(page) => Ok(bytes_of(&paged(state.types(), &page, TypeView::of))),
        None => Ok(bytes_of(&state.types().map(TypeView::of).collect::<Vec<_>>())),
    }
}

pub(super) fn lists(state: &Nopayload, asked: &Asked) -> Answer {
    let Some(page) = PageParams::read(&asked.pairs) else {
        TooManyRows::check(state.lists().map(|(_, list)| list.iovs().len()).sum())?;
        let lists = state.lists().map(|row| ListDetail::of(state, row));
        return Ok(bytes_of(&lists.collect::<Vec<_>>()));
    };
    let wanted = state.lists().filter(wanted(state, asked));
    Ok(bytes_of(&paged(wanted.map(|row| ListListed::of(state, row)), &page, |row| row)))
}

/// Whether a list is of the tag and the type that are asked for.
fn wanted<'a>(
    state: &Nopayload,
    asked: &Asked,
) -> impl Fn(&(u32, &'a List)) -> bool + Clone + use<'a> {
    let tag = asked.pairs.filled("global_tag");
    let tag = tag.map(|name| state.tag_named(name).map(|(id, _)| id));
    let of_type = asked.pairs.filled("payload_type");
    let of_type = of_type.map(|name| state.type_named(name).map(|(id, _)| id));
    move |(_, list)| {
        tag.is_none_or(|tag| tag.is_some() && list.tag == tag)
            && of_type.is_none_or(|id| id == Some(list.payload_type))
    }
}

pub(super) fn list(state: &Nopayload, asked: &Asked) -> Answer {
    let id = asked.number(0)?;
    let list = state.list(id).ok_or_else(Refusal::not_found)?;
    Ok(bytes_of(&ListView::numbered((id, list))))
}

pub(super) fn list_by_name(state: &Nopayload, asked: &Asked) -> Answer {
    let row = state.list_named(asked.part(0)).ok_or_else(Refusal::not_found)?;
    Ok(bytes_of(&ListListed::of(state, row)))
}

pub(super) fn iovs(state: &Nopayload, asked: &Asked) -> Answer {
    let Some(page) = PageParams::read(&asked.pairs) else {
        TooManyRows::check(state.iov_count())?;
        let iovs = state.iovs().map(|row| IovView::of(state, row));
        return Ok(bytes_of(&iovs.collect::<Vec<_>>()));
    };
    let row = |(id, iov)| IovRow { state, id, iov };
    let filters = ["payload_list", "global_tag", "payload_type"];
    if filters.iter().all(|name| asked.pairs.filled(name).is_none()) {
        return Ok(bytes_of(&paged(state.iovs().map(row), &page, IovListed::of)));
    }
    // Only the lists that are asked for are looked through.
    let name = asked.pairs.filled("payload_list");
    let lists = state.lists().filter(|(_, list)| name.is_none_or(|name| list.name == name));
    let lists = lists.filter(wanted(state, asked));
    let mut ids: Vec<u32> = lists.flat_map(|(_, list)| list.iovs()).collect();
    ids.sort_unstable();
    let found = ids.iter().filter_map(|id| Some(row((*id, state.iov(*id)?))));
    Ok(bytes_of(&paged(found, &page, IovListed::of)))
}

pub(super) fn iov(state: &Nopayload, asked: &Asked) -> Answer {
    let id = asked.number(0)?;
    let iov = state.iov(id).ok_or_else(Refusal::not_found)?;
    Ok(bytes_of(&IovView::of(state, (id, iov))))
}

pub(super) fn setting(_: &Nopayload, asked: &Asked) -> Answer {
    match asked.part(0) {
        "CDB_IOV_MODE" => Ok(bytes_of(&json!({ "CDB_IOV_MODE": "continuous" }))),
        other => {
            let detail = format!("Setting '{other}' not found.");
            Err(Refusal::detail(StatusCode::NOT_FOUND, detail))
        }
    }
}
