//! A service for tests of plans: keys and values, and no client.

use std::sync::Arc;

use load::kv::{Rules, Store};
use load::{Part, SpecError, Workload};
use wire::ProtocolError;

use super::types::{DefaultOf, MakePage};

pub(super) fn read(part: &Part<'_>, rules: &'static Rules) -> Result<Arc<dyn Workload>, SpecError> {
    Ok(Store::read(part, rules)?.with_dialects(|_, _| Err(ProtocolError::new("no client"))))
}

pub(super) const NO_PAGE: MakePage = |_, _| Err(ProtocolError::new("no page"));

pub(super) const NO_DEFAULT: DefaultOf = |_, _| None;
