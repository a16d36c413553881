//! The crate's integration tests: one program, one module for each kind of report.

mod advice;
mod browser;
mod capacity;
mod contest;
mod fixture;
mod grade;
mod history;
mod html;
mod json;
mod ladder;
mod notes;
mod sentences;
mod summary;
mod text;
mod verdicts;
