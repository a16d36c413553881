//! Values with intervals of validity, by folder, channel and tag.
#![deny(unsafe_code)]
pub mod model;
