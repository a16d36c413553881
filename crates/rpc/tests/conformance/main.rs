//! The child of the conformance runner of Protocol Buffers: takes messages apart and puts them
//! together again, as the runner asks on standard input, until that ends. `codec` does so with the
//! codec `protobuf`, `call` with what `loadline rpc call` uses, which knows JSON, too.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use buffa::Message as _;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, SerializeOptions};

// What is generated has its own style.
#[allow(dead_code, unreachable_pub, unused_imports, clippy::all)]
#[allow(clippy::too_many_lines)]
mod generated {
    pub(crate) mod asked {
        include!(concat!(env!("OUT_DIR"), "/conformance_conformance.rs"));
    }
    pub(crate) mod proto2 {
        include!(concat!(env!("OUT_DIR"), "/conformance_protobuf_test_messages.proto2.rs"));
    }
    pub(crate) mod proto3 {
        include!(concat!(env!("OUT_DIR"), "/conformance_protobuf_test_messages.proto3.rs"));
    }
}

use generated::asked::__buffa::oneof::conformance_request::Payload;
use generated::asked::__buffa::oneof::conformance_response::Result as Answer;
use generated::asked::{ConformanceRequest, ConformanceResponse, TestCategory, WireFormat};
use generated::{proto2, proto3};

static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/conformance.bin"));

/// A message of generated code there and back.
fn again<M: buffa::Message + Default>(bytes: &[u8]) -> Answer {
    let mut message = M::default();
    match message.merge_from_slice(bytes) {
        Ok(()) => Answer::ProtobufPayload(message.encode_to_vec()),
        Err(why) => Answer::ParseError(why.to_string()),
    }
}

/// By the codec.
fn by_codec(asked: &ConformanceRequest) -> Answer {
    let Some(Payload::ProtobufPayload(bytes)) = &asked.payload else {
        return Answer::Skipped("the codec has its bytes only".to_owned());
    };
    if asked.requested_output_format.to_i32() != WireFormat::PROTOBUF as i32 {
        return Answer::Skipped("the codec has its bytes only".to_owned());
    }
    match &asked.message_type[..] {
        "protobuf_test_messages.proto2.TestAllTypesProto2" => {
            again::<proto2::TestAllTypesProto2>(bytes)
        }
        "protobuf_test_messages.proto3.TestAllTypesProto3" => {
            again::<proto3::TestAllTypesProto3>(bytes)
        }
        other => Answer::Skipped(format!("{other} is of an edition")),
    }
}

/// By what `loadline rpc call` uses.
fn by_call(pool: &DescriptorPool, asked: &ConformanceRequest) -> Answer {
    let Some(descriptor) = pool.get_message_by_name(&asked.message_type) else {
        return Answer::Skipped(format!("{} is of an edition", asked.message_type));
    };
    let parsed = match &asked.payload {
        Some(Payload::ProtobufPayload(bytes)) => {
            DynamicMessage::decode(descriptor, &bytes[..]).map_err(|why| why.to_string())
        }
        Some(Payload::JsonPayload(text)) => {
            let ignoring = TestCategory::JSON_IGNORE_UNKNOWN_PARSING_TEST as i32;
            let denies = asked.test_category.to_i32() != ignoring;
            let options = DeserializeOptions::new().deny_unknown_fields(denies);
            let mut text = serde_json::Deserializer::from_str(text);
            DynamicMessage::deserialize_with_options(descriptor, &mut text, &options)
                .and_then(|message| text.end().map(|()| message))
                .map_err(|why| why.to_string())
        }
        _ => return Answer::Skipped("neither bytes nor JSON".to_owned()),
    };
    let message = match parsed {
        Ok(message) => message,
        Err(why) => return Answer::ParseError(why),
    };
    match asked.requested_output_format.to_i32() {
        format if format == WireFormat::PROTOBUF as i32 => {
            Answer::ProtobufPayload(message.encode_to_vec())
        }
        format if format == WireFormat::JSON as i32 => {
            let mut text = serde_json::Serializer::new(Vec::new());
            let options = SerializeOptions::new();
            match message.serialize_with_options(&mut text, &options) {
                Ok(()) => match String::from_utf8(text.into_inner()) {
                    Ok(text) => Answer::JsonPayload(text),
                    Err(why) => Answer::SerializeError(why.to_string()),
                },
                Err(why) => Answer::SerializeError(why.to_string()),
            }
        }
        _ => Answer::Skipped("neither bytes nor JSON".to_owned()),
    }
}

fn serve(answer: impl Fn(&ConformanceRequest) -> Answer) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() {
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        input.read_exact(&mut bytes)?;
        let asked = ConformanceRequest::decode_from_slice(&bytes).map_err(io::Error::other)?;
        let result = Some(answer(&asked));
        let bytes = ConformanceResponse { result, ..Default::default() }.encode_to_vec();
        output.write_all(&(bytes.len() as u32).to_le_bytes())?;
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let served = match std::env::args().nth(1).as_deref() {
        Some("codec") => serve(by_codec),
        Some("call") => match DescriptorPool::decode(DESCRIPTORS) {
            Ok(pool) => serve(|asked| by_call(&pool, asked)),
            Err(why) => Err(io::Error::other(why)),
        },
        _ => Err(io::Error::other("rpc-conformance codec|call, started by the runner")),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("rpc-conformance: {why}");
            ExitCode::FAILURE
        }
    }
}
