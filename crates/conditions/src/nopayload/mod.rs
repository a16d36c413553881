//! The interface of NoPayloadDB 5.1, a conditions database of global tags whose payloads are files,
//! and its file service.
//!
//! [`model`] holds tags, lists and intervals, [`protocol`] is the interface as bytes and types;
//! neither does I/O. `server` answers. Its changes are changes of the whole service's state: they
//! go through the same owner and the same journal. docs/nopayloaddb.md lists the requests, and
//! where they differ from the reference.

pub mod model;
pub mod protocol;
pub(crate) mod server;
