//! Requests and answers of ecFlow clients, as bytes and types.
