//! The statistics beside other implementations of them: one program, one module for each.

mod otava;
mod scipy;
