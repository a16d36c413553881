//! The interface as bytes and types: bodies and parameters, and answers in JSON.

mod fields;
mod key;
mod page;
mod params;
mod rows;
mod view;

pub use fields::{BadBody, Fields, bulk};
pub use key::check_key;
pub use page::{Browse, Page, PageParams, SortKey, paged};
pub use params::{Pairs, Query, Shape};
pub use rows::write_rows;
pub use view::{
    FileView, IovListed, IovRow, IovView, ListDetail, ListListed, ListView, StatusView, TagDetail,
    TagListed, TagView, TooManyRows, TypeView,
};

/// The path that all requests but those for files begin with.
pub const BASE: &str = "/api/cdb_rest";
