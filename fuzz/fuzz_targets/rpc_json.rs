//! Any text as the JSON of a request: it is refused, or its message is as long again once it has
//! come back as bytes, and as JSON.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use rpc::client::Schema;

/// What is asked with.
static MESSAGES: LazyLock<[MessageDescriptor; 2]> = LazyLock::new(|| {
    let pool = Schema::of_program().pool;
    let names = ["loadline.rpc.v1.Sample", "grpc.testing.StreamingOutputCallRequest"];
    names.map(|name| pool.get_message_by_name(name).expect("it is there"))
});

/// Reads a message as `loadline rpc call` does.
fn read(message: &MessageDescriptor, text: &[u8]) -> Option<DynamicMessage> {
    let mut json = serde_json::Deserializer::from_slice(text);
    DynamicMessage::deserialize(message.clone(), &mut json).ok()
}

fuzz_target!(|text: &[u8]| {
    for message in &*MESSAGES {
        let Some(request) = read(message, text) else { continue };
        let bytes = request.encode_to_vec();
        // JSON may be deeper than messages are.
        let Ok(came) = DynamicMessage::decode(message.clone(), &bytes[..]) else { continue };
        let shown = serde_json::to_vec(&came).expect("it can be shown");
        let again = read(message, &shown).expect("what is shown can be read");
        // Entries of maps may have changed places.
        assert_eq!(again.encode_to_vec().len(), bytes.len());
    }
});
