//! Makes Rust types and descriptors of the .proto files, without protoc.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=tests/conformance/proto");
    #[cfg(feature = "grpc")]
    generate(Path::new(&std::env::var("OUT_DIR")?))?;
    #[cfg(feature = "conformance")]
    conformance(Path::new(&std::env::var("OUT_DIR")?))?;
    #[cfg(not(feature = "grpc"))]
    let _ = Path::new("proto");
    Ok(())
}

/// What is served, or sent with a status.
#[cfg(feature = "grpc")]
const FILES: &[&str] = &[
    "connectrpc/conformance/v1/service.proto",
    "google/rpc/status.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
    "grpc/testing/test.proto",
    "loadline/rpc/v1/table.proto",
];

/// The package of the table.
#[cfg(feature = "grpc")]
const TABLE: &str = ".loadline.rpc.v1";

#[cfg(feature = "grpc")]
fn generate(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    use protox::prost::Message as _;

    let descriptors = protox::compile(FILES, ["proto"])?;
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    measured(&descriptors.encode_to_vec(), out)?;
    let mut config = prost_build::Config::new();
    // Payloads are not copied. The table's messages are in `src/protocol/table.rs`, because own
    // frames need them without all this.
    config.bytes(["."]).extern_path(TABLE, "crate::protocol::table").include_file("proto.rs");
    config.compile_fds(descriptors)?;
    Ok(())
}

/// The messages that codecs are compared with, by buffa, which keeps fields that it doesn't know.
#[cfg(feature = "grpc")]
fn measured(descriptors: &[u8], out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    use buffa_codegen::generated::descriptor::FileDescriptorSet;

    use buffa::Message as _;

    let set = FileDescriptorSet::decode_from_slice(descriptors)?;
    let wanted = ["loadline/rpc/v1/table.proto".to_owned()];
    for file in buffa_codegen::generate(&set.file, &wanted, &by_buffa())? {
        std::fs::write(out.join("measured.rs"), file.content)?;
    }
    Ok(())
}

/// How buffa's code is made.
#[cfg(feature = "grpc")]
fn by_buffa() -> buffa_codegen::CodeGenConfig {
    let mut config = buffa_codegen::CodeGenConfig::default();
    (config.generate_views, config.file_per_package) = (false, true);
    config
}

/// The messages of the conformance suite of Protocol Buffers, by buffa in the same way, and their
/// descriptors.
#[cfg(feature = "conformance")]
fn conformance(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    use buffa::Message as _;
    use buffa_codegen::generated::descriptor::FileDescriptorSet;
    use protox::prost::Message as _;

    let files = [
        "conformance/conformance.proto",
        "google/protobuf/test_messages_proto2.proto",
        "google/protobuf/test_messages_proto3.proto",
    ];
    let descriptors = protox::compile(files, ["tests/conformance/proto"])?.encode_to_vec();
    std::fs::write(out.join("conformance.bin"), &descriptors)?;
    let set = FileDescriptorSet::decode_from_slice(&descriptors)?;
    let mut config = by_buffa();
    config.allow_message_set = true;
    let files = files.map(str::to_owned);
    for file in buffa_codegen::generate(&set.file, &files, &config)? {
        std::fs::write(out.join(format!("conformance_{}.rs", file.package)), file.content)?;
    }
    Ok(())
}
