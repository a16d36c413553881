//! Requests and answers of ecFlow clients, as bytes and types.
//!
//! A connection carries one request: a frame ([`frame`]) around a document in the JSON of the C++
//! library cereal ([`read`]), and then the same with the answer ([`Reply::write`]). The types
//! follow ecFlow 5.9.2 (`Base/src/cts`, `Base/src/stc`), as its client was seen to write them. What
//! is this program's own stands in a line before that ([`header`]).

mod answer;
mod archive;
mod attributes;
#[cfg(test)]
mod captured;
mod escape;
pub mod frame;
pub mod header;
mod json;
mod memento;
mod nodes;
mod passed;
mod password;
mod print;
mod read;
mod reply;
mod request;
mod source;
mod synced;
mod words;
mod write;

pub use answer::{Answer, read_answer};
pub use header::{Encoding, Header, is_spoken, read_own, write_own};
pub use json::BadJson;
pub use memento::{Compound, Memento};
pub use nodes::Children;
pub use passed::{read_passed, write_passed};
pub use password::hash_password;
pub use read::{BadRequest, read};
pub use reply::{Changes, News, Reply, Standard, Stats, ZombieRow};
pub use request::{
    Alteration, Body, Child, Command, Edit, FileKind, HandleCommand, LogCommand, NodeCommand,
    Order, PathsCommand, Report, Request, Requeue, ServerCommand, SyncKind, User, ZombieAction,
    one_word,
};
pub use source::Source;
pub use synced::{SyncAnswer, SyncedChange, SyncedNode, read_sync_answer};
pub use words::{ADDED, CHANGED, DELETED, FLAGS};
pub use write::write;
