//! The `records` room: live records of typed values and big arrays, over EPICS pvAccess.
//!
//! [`protocol`] is bytes to types and back. README.md says what is spoken and its limits.

#![forbid(unsafe_code)]

pub mod protocol;
