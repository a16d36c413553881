//! The sensors: one file each, and a line each in [`super::sensor::SENSORS`].

pub(super) mod backlog;
pub(super) mod cores;
pub(super) mod descriptors;
pub(super) mod disks;
pub(super) mod hiccups;
pub(super) mod load;
pub(super) mod network;
pub(super) mod pressure;
pub(super) mod processes;
pub(super) mod sockets;
pub(super) mod swap;
pub(super) mod switches;
