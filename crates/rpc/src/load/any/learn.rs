//! The schema of a method, asked of the server's reflection by the connection that loads it: v1,
//! or v1alpha where that is all that there is.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;

use super::plan::{Plan, prefixed};
use super::{Any, Learn, Learning, REFLECTION};
use crate::client::{Files, Schema, add_files, first_missing, split};
use crate::load::made::PREFIX_BYTES;
use crate::protocol::proto::reflection::server_reflection_request::MessageRequest;
use crate::protocol::proto::reflection::server_reflection_response::MessageResponse;
use crate::protocol::proto::reflection::{ServerReflectionRequest, ServerReflectionResponse};

/// UNIMPLEMENTED.
const UNIMPLEMENTED: u32 = 12;

/// What a suite says, for a server that is still to be asked.
pub(super) struct Reflection(Plan);

impl Reflection {
    pub(super) fn new(plan: Plan) -> Self {
        Self(plan)
    }
}

impl Learn for Reflection {
    fn begin(&self) -> Box<dyn Learning> {
        let service = split(self.0.method()).map_or("", |(service, _)| service);
        Box::new(Asking {
            plan: self.0.clone(),
            version: 0,
            next: MessageRequest::FileContainingSymbol(service.to_owned()),
            files: BTreeMap::new(),
        })
    }
}

struct Asking {
    plan: Plan,
    version: usize,
    next: MessageRequest,
    files: Files,
}

impl Learning for Asking {
    fn question(&self) -> (&'static str, Bytes) {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(self.next.clone()),
        };
        (REFLECTION[self.version], prefixed(&request.encode_to_vec()))
    }

    fn answered(&mut self, answer: &[u8]) -> Result<Option<Any>, String> {
        let message = answer.get(PREFIX_BYTES..).unwrap_or_default();
        let answer = ServerReflectionResponse::decode(message)
            .map_err(|why| format!("its answer can't be read: {why}"))?;
        let files = match answer.message_response {
            Some(MessageResponse::FileDescriptorResponse(files)) => files.file_descriptor_proto,
            Some(MessageResponse::ErrorResponse(error)) => return Err(error.error_message),
            _ => return Err("it answers another question".to_owned()),
        };
        let before = self.files.len();
        add_files(&mut self.files, files).map_err(|why| why.to_string())?;
        // A server may leave imports out.
        if let Some(name) = first_missing(&self.files) {
            if self.files.len() == before {
                return Err(format!("it doesn't give the file {name}"));
            }
            self.next = MessageRequest::FileByFilename(name);
            return Ok(None);
        }
        let schema = Schema::of_descriptors(std::mem::take(&mut self.files));
        let schema = schema.map_err(|why| why.to_string())?;
        let method = schema.method(self.plan.method()).map_err(|why| why.to_string())?;
        let any = self.plan.any(&method);
        any.map(Some).map_err(|(key, why)| format!("workload.{key}: {why}"))
    }

    fn refused(&mut self, status: u32) -> bool {
        self.version += 1;
        status == UNIMPLEMENTED && self.version < REFLECTION.len()
    }
}
