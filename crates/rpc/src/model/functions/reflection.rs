//! Reflection (grpc, doc/server-reflection.md): the descriptors of what is served. Versions v1 and
//! v1alpha have the same bytes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use bytes::Bytes;
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::model::call::Call;
use crate::protocol::proto::DESCRIPTORS;
use crate::protocol::proto::reflection::server_reflection_request::MessageRequest;
use crate::protocol::proto::reflection::server_reflection_response::MessageResponse;
use crate::protocol::proto::reflection::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use crate::protocol::status::{Code, Status};

/// A file and those that it imports.
struct File {
    bytes: Bytes,
    imports: Vec<String>,
}

/// What is looked up.
#[derive(Default)]
struct Index {
    files: BTreeMap<String, File>,
    /// The file of each symbol.
    symbols: HashMap<String, String>,
    messages: HashSet<String>,
    services: Vec<String>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    // Made by this crate's own build; without it nothing would be listed, which a test would see.
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
    let mut index = Index::default();
    for file in set.file {
        index.add(&file);
    }
    index
});

impl Index {
    fn add(&mut self, file: &FileDescriptorProto) {
        let (name, package) = (file.name().to_owned(), file.package());
        for service in &file.service {
            let full = format!("{package}.{}", service.name());
            for method in &service.method {
                self.symbols.insert(format!("{full}.{}", method.name()), name.clone());
            }
            self.symbols.insert(full.clone(), name.clone());
            self.services.push(full);
        }
        for one in &file.enum_type {
            self.symbols.insert(format!("{package}.{}", one.name()), name.clone());
        }
        for message in &file.message_type {
            self.add_message(&name, package, message);
        }
        let imports = file.dependency.clone();
        self.files.insert(name, File { bytes: file.encode_to_vec().into(), imports });
    }

    fn add_message(&mut self, file: &str, scope: &str, message: &DescriptorProto) {
        let full = format!("{scope}.{}", message.name());
        for field in &message.field {
            self.symbols.insert(format!("{full}.{}", field.name()), file.to_owned());
        }
        for one in &message.enum_type {
            self.symbols.insert(format!("{full}.{}", one.name()), file.to_owned());
        }
        for nested in &message.nested_type {
            self.add_message(file, &full, nested);
        }
        self.symbols.insert(full.clone(), file.to_owned());
        self.messages.insert(full);
    }

    /// A file and all that it imports, each once, imports behind what needs them.
    fn whole(&self, name: &str) -> Option<Vec<Bytes>> {
        self.files.get(name)?;
        let mut names = vec![name.to_owned()];
        let mut at = 0;
        while let Some(name) = names.get(at).cloned() {
            let imports = self.files.get(&name).map(|file| &file.imports[..]).unwrap_or_default();
            for import in imports {
                if !names.contains(import) {
                    names.push(import.clone());
                }
            }
            at += 1;
        }
        let bytes = |name: &String| Some(self.files.get(name)?.bytes.clone());
        Some(names.iter().filter_map(bytes).collect())
    }

    fn answer(&self, asked: &MessageRequest) -> MessageResponse {
        let files = |found: Option<Vec<Bytes>>, what: &str, name: &str| match found {
            Some(file_descriptor_proto) => {
                let files = FileDescriptorResponse { file_descriptor_proto };
                MessageResponse::FileDescriptorResponse(files)
            }
            None => not_found(format!("there is no {what} \"{name}\" here")),
        };
        match asked {
            MessageRequest::FileByFilename(name) => files(self.whole(name), "file", name),
            MessageRequest::FileContainingSymbol(name) => {
                // Some clients write a leading dot.
                let file = self.symbols.get(name.strip_prefix('.').unwrap_or(name));
                files(file.and_then(|file| self.whole(file)), "symbol", name)
            }
            MessageRequest::FileContainingExtension(one) => {
                let (number, of) = (one.extension_number, &one.containing_type);
                not_found(format!("there is no extension {number} of \"{of}\" here"))
            }
            MessageRequest::AllExtensionNumbersOfType(name) if self.messages.contains(name) => {
                let (base_type_name, extension_number) = (name.clone(), Vec::new());
                let none = ExtensionNumberResponse { base_type_name, extension_number };
                MessageResponse::AllExtensionNumbersResponse(none)
            }
            MessageRequest::AllExtensionNumbersOfType(name) => {
                not_found(format!("there is no message \"{name}\" here"))
            }
            MessageRequest::ListServices(_) => {
                let named = |name: &String| ServiceResponse { name: name.clone() };
                let service = self.services.iter().map(named).collect();
                MessageResponse::ListServicesResponse(ListServiceResponse { service })
            }
        }
    }
}

fn not_found(error_message: String) -> MessageResponse {
    let error_code = Code::NotFound as i32;
    MessageResponse::ErrorResponse(ErrorResponse { error_code, error_message })
}

/// The names of all services.
pub(super) fn services() -> &'static [String] {
    &INDEX.services
}

pub(super) async fn info(mut call: Call) -> Result<(), Status> {
    while let Some(request) = call.receive::<ServerReflectionRequest>().await? {
        let answer = match &request.message_request {
            Some(asked) => INDEX.answer(asked),
            None => MessageResponse::ErrorResponse(ErrorResponse {
                error_code: Code::InvalidArgument as i32,
                error_message: "the request asks for nothing that is known here".to_owned(),
            }),
        };
        let response = request.map(|request| ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(answer),
        });
        call.send(&*response).await;
    }
    Ok(())
}
