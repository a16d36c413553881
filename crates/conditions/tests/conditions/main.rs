//! The service from outside: its model against a naive one, its interface over HTTP, what is left
//! of it after it was killed, and the lab's workload.

#[cfg(feature = "arrow")]
mod arrow;
mod backup;
mod blocks;
mod bounds;
mod check;
mod described;
mod errors;
mod export;
mod interface;
mod kill;
mod load;
mod naive;
mod nopayload;
mod nopayload_client;
mod nopayload_random;
mod page;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "tier"))]
mod postgres_server;
mod quick;
mod random;
mod schemathesis;
mod sealing;
mod segments;
mod served;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "tier")]
mod tier;
mod tls;
