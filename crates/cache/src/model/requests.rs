//! Requests beyond get and set, and their outcomes.

use super::clock::Seconds;
use super::item::Entry;

/// The condition of a store on the item that its key has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    Set,
    /// No item.
    Add,
    /// An item.
    Replace,
    /// An item: the value is appended to its value.
    Append,
    /// An item: the value is prepended to its value.
    Prepend,
}

/// A store with its conditions.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The entry to store.
    pub entry: Entry<'a>,
    /// The condition on the present item.
    pub mode: Mode,
    /// The unique number that the item that is there has to have.
    pub compare: Option<u64>,
    /// With `compare`: an older number is accepted, too, and the new item is stale.
    pub stale_if_older: bool,
    /// The unique number that the new item gets, instead of the store's next.
    pub cas: Option<u64>,
    /// Whether append and prepend create an item where there is none.
    pub vivify: bool,
    /// Whether the key is shown in base64.
    pub binary_key: bool,
}

/// How an item is marked instead of being removed. It gets a new unique number in any case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The unique number, instead of the store's next.
    pub cas: Option<u64>,
    /// Its new expiry.
    pub expires_s: Option<Seconds>,
    /// It is stale from now on.
    pub stale: bool,
    /// Its value and flags are gone.
    pub empty: bool,
}

/// The outcome of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is stored, with this unique number.
    Stored(u64),
    /// The condition of the mode is not met.
    NotStored,
    /// The item that is there has another unique number.
    Exists,
    /// There is no item whose unique number could be compared.
    NotFound,
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The item is gone, or marked.
    Removed,
    /// There is none.
    NotFound,
    /// The item has another unique number.
    Exists,
}

/// An increment or decrement.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Whether to add; otherwise to subtract.
    pub increment: bool,
    /// By how much.
    pub delta: u64,
    /// The unique number that the item has to have.
    pub compare: Option<u64>,
    /// The unique number that the item gets, instead of the store's next.
    pub cas: Option<u64>,
    /// The number and expiry of a new item where there is none.
    pub create: Option<(u64, Seconds)>,
    /// The item's new expiry.
    pub expires_s: Option<Seconds>,
    /// Whether the key of a new item is shown in base64.
    pub binary_key: bool,
}

/// The outcome of an increment or decrement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summed {
    /// The item has a new number.
    Done(Total),
    /// The value is not a number of 64 bits.
    NotANumber,
    /// There is no item, and none was to be made.
    NotFound,
    /// The item has another unique number.
    Exists,
    /// There is no room for the new item.
    NoRoom,
}

/// An item after its number has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The number.
    pub number: u64,
    /// The unique number of the change.
    pub cas: u64,
    /// Whether the item was created.
    pub is_new: bool,
    /// The item's expiry before the change; 0 is never, and so it is for a new item.
    pub before_s: Seconds,
    /// The item's expiry after it.
    pub after_s: Seconds,
}

/// A read that may change more than the time of the last access.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access {
    /// Whether the first reader of a stale item is to recache it: it gets memcached's "win".
    pub wins: bool,
    /// Not even note that the item was read.
    pub unnoticed: bool,
    /// The item's new expiry.
    pub expires_s: Option<Seconds>,
    /// The expiry of an empty new item where there is none.
    pub vivify_s: Option<Seconds>,
    /// An item that expires before this second is to be recached by its first reader.
    pub recache_s: Option<Seconds>,
    /// Whether `recache_s` is compared with the new expiry instead of the old.
    pub recache_last: bool,
    /// Whether the key of a new item is shown in base64.
    pub binary_key: bool,
}

/// What a read with changes returns beside the item as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether this reader is to recache the item: memcached's "win".
    pub won: bool,
    /// The item's expiry before the read; 0 is never, and so it is for a new item.
    pub before_s: Seconds,
    /// The item's expiry after the read; 0 is never.
    pub after_s: Seconds,
}
