//! What a connection under load has made so far: channels, and operations on them that are
//! executed again and again. Data plane: nothing is allocated per execution.

use std::sync::Arc;

use load::Tag;
use load::kv::{Floor, Write};

use super::layout::Layout;

/// How far a channel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChannelState {
    /// Asked for: operations that wait for it.
    Asked(Vec<u32>),
    /// There, under this number of the server's.
    Open(u32),
}

/// A record's channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) key: u64,
    pub(super) state: ChannelState,
    /// Operations that are made and not under way, by kind.
    pub(super) idle_gets: Vec<u32>,
    pub(super) idle_puts: Vec<u32>,
    /// The last value that a get brought, where the target writes by itself.
    pub(super) last: Option<i64>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Get,
    Put,
    Monitor,
    Rpc,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its channel or its making is waited for.
    Making,
    /// Made, and not under way.
    Idle,
    /// Under way.
    Running,
    /// Ended: what still arrives for it is discarded.
    Gone,
}

/// What is known of an execution from its sending on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sent {
    /// Nothing: a monitor or a call.
    Nothing,
    /// It reads.
    Read(Floor),
    /// It writes a version.
    Write(Write),
    /// It writes the first version.
    Prepare,
}

/// An operation; its number is its place among all.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) what: What,
    pub(super) key: u64,
    pub(super) channel: u32,
    pub(super) stage: Stage,
    /// The waiting slot; `None` once the engine has given up.
    pub(super) tag: Option<Tag>,
    pub(super) sent: Sent,
    pub(super) layout: Option<Arc<Layout>>,
    /// The last value of a monitor.
    pub(super) last: Option<i64>,
    /// Updates of a monitor that are not acknowledged.
    pub(super) unacknowledged: u32,
}
