//! What a server's functions take and return: by reflection, or from .proto files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use prost_types::FileDescriptorProto;

use super::call::{Receiver, Sender};
use super::connect::Client;
use super::options::CallOptions;
use crate::protocol::proto::reflection::server_reflection_request::MessageRequest;
use crate::protocol::proto::reflection::server_reflection_response::MessageResponse;
use crate::protocol::proto::reflection::{ServerReflectionRequest, ServerReflectionResponse};
use crate::protocol::status::{Code, Status};

/// The services of reflection, the newer first; some servers have one of them only.
const SERVICES: [&str; 2] = ["grpc.reflection.v1", "grpc.reflection.v1alpha"];

/// The most files that a server's schema may have.
const MOST_FILES: usize = 10_000;

/// Why a schema can't be had.
#[derive(Debug)]
pub enum SchemaError {
    /// The server says so.
    Refused(Status),
    /// What is typed doesn't name anything.
    NotFound(String),
    /// Files can't be read or don't fit together.
    Unusable(String),
}

impl SchemaError {
    /// A symbol that isn't there, with the nearest of what is, and the services.
    pub(crate) fn missing(
        symbol: &str,
        services: &[String],
        pool: Option<&DescriptorPool>,
    ) -> Self {
        let known = pool.map_or_else(|| services.to_vec(), symbols);
        let near = match &nearest(symbol, &known)[..] {
            [] => String::new(),
            near => format!(" (did you mean {}?)", near.join(", ")),
        };
        let within = |service: &&String| {
            symbol.strip_prefix(&service[..]).is_some_and(|rest| rest.starts_with('.'))
        };
        Self::NotFound(match services.iter().find(within) {
            Some(service) => format!("there is no {symbol}{near}: list the methods of {service}"),
            None => format!("there is no {symbol}{near}: services are {}", list(services)),
        })
    }
}

/// What can be described: services, their methods, messages, and enumerations.
fn symbols(pool: &DescriptorPool) -> Vec<String> {
    let services = pool.services().map(|one| one.full_name().to_owned());
    let methods = pool.services().flat_map(|service| {
        service.methods().map(|one| one.full_name().to_owned()).collect::<Vec<_>>()
    });
    let messages = pool.all_messages().filter(|one| !one.is_map_entry());
    let messages = messages.map(|one| one.full_name().to_owned());
    let enums = pool.all_enums().map(|one| one.full_name().to_owned());
    services.chain(methods).chain(messages).chain(enums).collect()
}

/// The names that are most like this one, three at most: those whose last part begins and ends as
/// its last part does, for half of its letters at least.
fn nearest(symbol: &str, known: &[String]) -> Vec<String> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let wanted = last(symbol);
    let alike = |name: &str| {
        let name = last(name);
        let same = |one: &mut dyn Iterator<Item = char>, other: &mut dyn Iterator<Item = char>| {
            one.zip(other).take_while(|(one, other)| one == other).count()
        };
        let begins = same(&mut wanted.chars(), &mut name.chars());
        let ends = same(&mut wanted.chars().rev(), &mut name.chars().rev());
        let (longer, shorter) = (wanted.len().max(name.len()), wanted.len().min(name.len()));
        let alike = (begins + ends).min(shorter);
        (2 * alike >= longer).then_some(longer - alike)
    };
    let near = known.iter().filter_map(|name| Some((alike(name)?, name)));
    let mut near: Vec<_> = near.collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name.clone()).collect()
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(status) if status.code == Code::Unimplemented => write!(
                f,
                "the server has no reflection: name its .proto file with --proto ({status})"
            ),
            Self::Refused(status) => write!(f, "reflection: {status}"),
            Self::NotFound(words) | Self::Unusable(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for SchemaError {}

impl From<Status> for SchemaError {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// What functions take and return.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The descriptors.
    pub pool: DescriptorPool,
    /// The names of the services.
    pub services: Vec<String>,
}

impl Schema {
    /// Of .proto files, without protoc. A file's imports are looked up beside it and in `folders`.
    ///
    /// # Errors
    /// When one can't be read or is wrong; the error names file, line and column, or where an
    /// import was looked for.
    pub fn of_files(files: &[PathBuf], folders: &[PathBuf]) -> Result<Self, SchemaError> {
        let parents = files.iter().filter_map(|file| file.parent());
        let parents = parents.map(|parent| match parent.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => parent.to_owned(),
        });
        let roots: Vec<PathBuf> = folders.iter().cloned().chain(parents).collect();
        let shown = || {
            let roots: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
            roots.join(", ")
        };
        let unusable = |why: protox::Error| {
            let why = match why.file() {
                // It names line and column in its long form only.
                Some(_) => format!("{why:?}"),
                None => why.to_string(),
            };
            let hint = "(--import DIR adds a folder)";
            SchemaError::Unusable(format!("{}; looked in {} {hint}", why.trim(), shown()))
        };
        let mut compiler = protox::Compiler::new(&roots).map_err(unusable)?;
        compiler.include_imports(true).open_files(files).map_err(unusable)?;
        let pool = compiler.descriptor_pool();
        let services = pool.services().map(|service| service.full_name().to_owned()).collect();
        Ok(Self { pool, services })
    }

    /// Of this program's own functions.
    pub fn of_program() -> Self {
        let pool = crate::protocol::proto::pool();
        let services = pool.services().map(|service| service.full_name().to_owned()).collect();
        Self { pool, services }
    }

    /// Of a server, with the files of these symbols; of all its services where none is named.
    ///
    /// # Errors
    /// When it has no reflection, or doesn't know a symbol.
    pub async fn of_server(
        client: &Client,
        options: &CallOptions,
        symbols: &[&str],
    ) -> Result<Self, SchemaError> {
        let mut asking = Asking::begin(client, options).await?;
        let services = asking.services().await?;
        let wanted = match symbols {
            [] => services.iter().map(String::as_str).collect(),
            symbols => symbols.to_vec(),
        };
        let mut files = BTreeMap::new();
        for symbol in wanted {
            match asking.files(MessageRequest::FileContainingSymbol(symbol.into())).await {
                Ok(found) => add_files(&mut files, found)?,
                // Some servers list services that they can't describe.
                Err(status) if symbols.is_empty() && status.code == Code::NotFound => {}
                Err(status) if status.code == Code::NotFound => {
                    let pool = asking.all(&services).await;
                    return Err(SchemaError::missing(symbol, &services, pool.ok().as_ref()));
                }
                Err(status) => return Err(status.into()),
            }
        }
        asking.add_imports(&mut files).await?;
        asking.end();
        let pool = pool(files)?;
        Ok(Self { pool, services })
    }

    /// Of files, with all their imports.
    ///
    /// # Errors
    /// When they don't fit together.
    pub(crate) fn of_descriptors(files: Files) -> Result<Self, SchemaError> {
        let pool = pool(files)?;
        let services = pool.services().map(|service| service.full_name().to_owned()).collect();
        Ok(Self { pool, services })
    }

    /// The method that is written `package.Service/Method`, or with a dot.
    ///
    /// # Errors
    /// When there is none; the error lists those of the service.
    pub fn method(&self, written: &str) -> Result<MethodDescriptor, SchemaError> {
        let (service, method) = split(written)?;
        let Some(service) = self.pool.get_service_by_name(service) else {
            let words =
                format!("there is no service {service}: there are {}", list(&self.services));
            return Err(SchemaError::NotFound(words));
        };
        let found = service.methods().find(|one| one.name() == method);
        found.ok_or_else(|| {
            let known: Vec<_> = service.methods().map(|one| one.name().to_owned()).collect();
            let name = service.full_name();
            let words = format!("{name} has no method {method}: it has {}", list(&known));
            SchemaError::NotFound(words)
        })
    }

    /// A service by its name.
    pub fn service(&self, name: &str) -> Option<ServiceDescriptor> {
        self.pool.get_service_by_name(name)
    }
}

/// A method's service and name.
pub(crate) fn split(written: &str) -> Result<(&str, &str), SchemaError> {
    let bare = written.strip_prefix('/').unwrap_or(written);
    bare.rsplit_once('/').or_else(|| bare.rsplit_once('.')).ok_or_else(|| {
        let words = format!("\"{written}\" is no method: write package.Service/Method");
        SchemaError::NotFound(words)
    })
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The files of a schema by their names.
pub(crate) type Files = BTreeMap<String, FileDescriptorProto>;

/// Adds files as reflection sends them.
pub(crate) fn add_files(files: &mut Files, found: Vec<Bytes>) -> Result<(), SchemaError> {
    for bytes in found {
        let file = FileDescriptorProto::decode(bytes).map_err(|why| {
            SchemaError::Unusable(format!("the server's reflection sends no descriptor: {why}"))
        })?;
        files.insert(file.name().to_owned(), file);
    }
    if files.len() > MOST_FILES {
        let words = format!("the server's schema has more than {MOST_FILES} files");
        return Err(SchemaError::Unusable(words));
    }
    Ok(())
}

/// Adds what came for the file of this name. A server that goes on to send others would be asked
/// without end.
fn add_asked(files: &mut Files, name: &str, found: Vec<Bytes>) -> Result<(), SchemaError> {
    add_files(files, found)?;
    if files.contains_key(name) {
        return Ok(());
    }
    Err(SchemaError::Unusable(format!("the server's reflection doesn't give the file {name}")))
}

/// An import that isn't there.
pub(crate) fn first_missing(files: &Files) -> Option<String> {
    let mut imports = files.values().flat_map(|file| &file.dependency);
    imports.find(|name| !files.contains_key(*name)).cloned()
}

/// Puts the files together, each after those that it imports.
fn pool(mut files: Files) -> Result<DescriptorPool, SchemaError> {
    let mut pool = DescriptorPool::new();
    let mut there = BTreeSet::new();
    while !files.is_empty() {
        let is_next =
            |file: &FileDescriptorProto| file.dependency.iter().all(|name| there.contains(name));
        let next = files.iter().find(|(_, file)| is_next(file)).map(|(name, _)| name.clone());
        let Some(file) = next.and_then(|name| files.remove(&name)) else {
            let names: Vec<_> = files.into_keys().collect();
            let words = format!("files import each other in a circle: {}", list(&names));
            return Err(SchemaError::Unusable(words));
        };
        there.insert(file.name().to_owned());
        let set = prost_types::FileDescriptorSet { file: vec![file] };
        pool.decode_file_descriptor_set(&set.encode_to_vec()[..])
            .map_err(|why| SchemaError::Unusable(format!("the server's schema: {why}")))?;
    }
    Ok(pool)
}

/// A stream of questions.
struct Asking {
    sender: Sender,
    receiver: Receiver,
    /// What the first question was answered with.
    first: Option<MessageResponse>,
}

impl Asking {
    async fn begin(client: &Client, options: &CallOptions) -> Result<Self, SchemaError> {
        let mut last = Status::new(Code::Unimplemented, "");
        for service in SERVICES {
            let path = format!("/{service}.ServerReflection/ServerReflectionInfo");
            let (sender, receiver) = client.open(&path, options).await?;
            let mut asking = Self { sender, receiver, first: None };
            match asking.ask(MessageRequest::ListServices(String::new())).await {
                Ok(answer) => {
                    asking.first = Some(answer);
                    return Ok(asking);
                }
                Err(status) if status.code == Code::Unimplemented => last = status,
                Err(status) => return Err(status.into()),
            }
        }
        Err(last.into())
    }

    async fn ask(&mut self, asked: MessageRequest) -> Result<MessageResponse, Status> {
        let host = String::new();
        let request = ServerReflectionRequest { host, message_request: Some(asked) };
        // Where the call has ended, the answer says how.
        let _ = self.sender.send(&request.encode_to_vec()).await;
        let Some(answer) = self.receiver.next().await else {
            return Err(self.receiver.status());
        };
        let unreadable = |words: String| Status::new(Code::Internal, words);
        let answer = ServerReflectionResponse::decode(answer);
        let answer = answer.map_err(|why| unreadable(format!("an answer of reflection: {why}")))?;
        match answer.message_response {
            Some(MessageResponse::ErrorResponse(error)) => {
                Err(Status::new(Code::of(error.error_code), error.error_message))
            }
            Some(answer) => Ok(answer),
            None => Err(unreadable("an empty answer of reflection".to_owned())),
        }
    }

    async fn services(&mut self) -> Result<Vec<String>, Status> {
        match self.first.take() {
            Some(MessageResponse::ListServicesResponse(list)) => {
                let mut names: Vec<_> = list.service.into_iter().map(|one| one.name).collect();
                names.sort();
                Ok(names)
            }
            _ => Err(Status::new(Code::Internal, "reflection lists no services")),
        }
    }

    async fn files(&mut self, asked: MessageRequest) -> Result<Vec<Bytes>, Status> {
        match self.ask(asked).await? {
            MessageResponse::FileDescriptorResponse(files) => Ok(files.file_descriptor_proto),
            _ => Err(Status::new(Code::Internal, "reflection answers another question")),
        }
    }

    /// Adds the imports that a server has left out.
    async fn add_imports(&mut self, files: &mut Files) -> Result<(), SchemaError> {
        while let Some(name) = first_missing(files) {
            let asked = MessageRequest::FileByFilename(name.clone());
            add_asked(files, &name, self.files(asked).await?)?;
        }
        Ok(())
    }

    /// All that the server describes, to say what is like what was asked for.
    async fn all(&mut self, services: &[String]) -> Result<DescriptorPool, SchemaError> {
        let mut files = Files::new();
        for service in services {
            let asked = MessageRequest::FileContainingSymbol(service.clone());
            match self.files(asked).await {
                Ok(found) => add_files(&mut files, found)?,
                // It lists some that it can't describe.
                Err(status) if status.code == Code::NotFound => {}
                Err(status) => return Err(status.into()),
            }
        }
        self.add_imports(&mut files).await?;
        pool(files)
    }

    fn end(mut self) {
        // The connection may have ended, too.
        let _ = self.sender.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_sends_another_file_than_it_is_asked_for_is_refused() {
        let file = |name: &str| {
            let name = Some(name.to_owned());
            Bytes::from(FileDescriptorProto { name, ..Default::default() }.encode_to_vec())
        };
        let mut files = Files::new();
        assert!(add_asked(&mut files, "a.proto", vec![file("b.proto"), file("a.proto")]).is_ok());
        for found in [Vec::new(), vec![file("d.proto")]] {
            let wrong = add_asked(&mut files, "c.proto", found).expect_err("no file");
            assert!(wrong.to_string().contains("doesn't give the file c.proto"), "{wrong}");
        }
    }
}
