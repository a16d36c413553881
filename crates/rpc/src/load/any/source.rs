//! The keys of `[workload]`: what is known of the operation before the load.

use std::path::PathBuf;
use std::sync::Arc;

use load::{Part, SpecError};

use super::expression::Expression;
use super::learn::Reflection;
use super::plan::{Plan, REQUESTS};
use super::{AnySpec, Source};
use crate::client::Schema;

/// The most different requests.
const MOST_REQUESTS: u32 = 4_096;

/// What is known of the operation before the load.
///
/// # Errors
/// Names the key that is wrong, or file, line and column of the .proto file.
pub(in crate::load) fn source(
    spec: &AnySpec,
    part: &Part<'_>,
    length: Option<usize>,
    messages: usize,
) -> Result<Source, SpecError> {
    if spec.path().is_none() {
        let words = match &spec.method {
            Some(written) => format!("\"{written}\" is no method: write package.Service/Method"),
            None => "the operation call needs one: method = \"package.Service/Method\"".to_owned(),
        };
        return Err(part.error("method", words));
    }
    let requests = spec.requests.unwrap_or(REQUESTS);
    if !(1..=MOST_REQUESTS).contains(&requests) {
        let words = format!("{requests} is not from 1 to {MOST_REQUESTS} requests");
        return Err(part.error("requests", words));
    }
    let said = [spec.expect.echo, spec.expect.message.is_some(), !spec.expect.fields.is_empty()];
    if said.iter().filter(|said| **said).count() > 1 {
        let words = "an answer is compared with one thing: echo, message or fields";
        return Err(part.error("expect", words));
    }
    // Names are looked up once the method is known; what can't be right is refused now.
    for (name, text) in &spec.expect.fields {
        let wrong = |why| part.error(&format!("expect.fields.{name}"), why);
        Expression::check(text).map_err(wrong)?;
    }
    let plan = Plan::new(spec.clone(), length, messages, part.seed);
    let Some(proto) = &spec.proto else {
        return Ok(Source::Asked(Arc::new(Reflection::new(plan))));
    };
    let folders: Vec<PathBuf> = spec.imports.iter().map(|one| part.folder.join(one)).collect();
    let schema = Schema::of_files(&[part.folder.join(proto)], &folders)
        .map_err(|why| part.error("proto", why.to_string()))?;
    let method = schema.method(spec.method.as_deref().unwrap_or_default());
    let method = method.map_err(|why| part.error("method", why.to_string()))?;
    let any = plan.any(&method).map_err(|(key, why)| part.error(&key, why))?;
    Ok(Source::Known(Arc::new(any)))
}
