//! Own frames: a call is one frame, and so is its answer. Bytes only: who carries them is not known
//! here. A connection begins with a greeting of each side ([`greeting`]); then come frames
//! ([`frame`]), which [`Decoder`] takes from the bytes and [`Outbox`] gathers to be sent.

mod client;
mod decoder;
mod fault;
pub mod fields;
pub mod frame;
pub mod greeting;
mod numbers;
mod outbox;

pub use client::{Begin, ClientSession, Event, What};
pub use decoder::{Decoder, Item};
pub use fault::Fault;
pub use greeting::{FIRST_BYTE, MAGIC, VERSION};
pub use outbox::Outbox;
