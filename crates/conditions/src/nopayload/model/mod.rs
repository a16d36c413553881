//! Global tags, payload lists and their intervals, and what changes them: without I/O and without a
//! clock. The order of a change is [`Nopayload::check`], then [`Nopayload::apply`].

mod apply;
mod change;
mod check;
mod moment;
mod refused;
mod starts;
mod state;
mod table;

pub use change::{Added, Change, Touched, Touches, open_from};
pub use check::KEY_BYTES;
pub use moment::{Interval, MAX_NUMBER, Moment};
pub use refused::Refused;
pub use state::{
    FROZEN, Iov, LOCKED, List, Nopayload, PayloadType, Revision, Row, Status, StoredFile, Tag,
    UNLOCKED,
};
