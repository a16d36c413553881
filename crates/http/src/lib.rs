//! The lab's client of web services: HTTP/1.1 as a client speaks it, and a workload of requests
//! that the suite itself describes. There is no server here.

pub mod load;
pub mod protocol;
