//! Calls of `add` without frames and carriers: how much of a call is the function itself, the
//! encoding of its messages, and finding it by name.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use bytes::Bytes;

use crate::model::call::{Here, Info};
use crate::model::function::{Function, Run};
use crate::protocol::message::{decode, encode};
use crate::protocol::status::{Code, Status};
use crate::protocol::table::Number;

/// How much of a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Rung {
    /// The function is called.
    Direct,
    /// Its messages are encoded and decoded, too.
    Codec,
    /// It is found by its name, too.
    Table,
}

impl Rung {
    /// The rung of an address.
    pub(super) fn of(address: &str) -> Option<Self> {
        match address {
            "direct:" => Some(Self::Direct),
            "codec:" => Some(Self::Codec),
            "table:" => Some(Self::Table),
            _ => None,
        }
    }
}

/// The functions, within this process.
pub(in crate::command) struct Within {
    rung: Rung,
    functions: HashMap<String, Arc<Function>>,
    total: AtomicI64,
    info: Info,
}

impl Within {
    pub(super) fn new(rung: Rung) -> Self {
        let info = Info {
            pid: std::process::id(),
            here: Here::default,
            calls: 0,
            carrier: "none",
            metadata: Default::default(),
            timeout: None,
            is_stopping: false,
        };
        Self { rung, functions: crate::model::all(), total: AtomicI64::new(0), info }
    }

    /// One call.
    pub(super) fn call(&self, path: &str, request: &Bytes) -> Result<Bytes, Status> {
        match self.rung {
            Rung::Direct | Rung::Codec => {
                let Number { value } = decode(black_box(request))?;
                Ok(encode(&Number { value: self.add(value) }))
            }
            Rung::Table => {
                let function = self.functions.get(black_box(path));
                match function.map(|function| &function.run) {
                    Some(Run::AtOnce(run)) => run(&self.info, request.clone()),
                    _ => Err(Status::new(Code::Unimplemented, "no such function")),
                }
            }
        }
    }

    /// One call of the function itself, where that is all.
    pub(super) fn direct(&self, value: i64) -> Option<i64> {
        (self.rung == Rung::Direct).then(|| self.add(black_box(value)))
    }

    #[inline(never)]
    fn add(&self, value: i64) -> i64 {
        self.total.fetch_add(value, Relaxed) + value
    }
}
