//! Several servers of the same data, over a real PostgreSQL and a real service of S3.

mod backup;
mod cache;
mod encrypted;
mod evict;
mod full;
mod kill;
mod one;
mod place;
