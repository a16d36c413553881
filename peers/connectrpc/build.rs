//! Makes the types and services of the .proto files that our own server has, without protoc.

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../crates/rpc/proto";
    println!("cargo:rerun-if-changed={folder}");
    let files = ["loadline/rpc/v1/table.proto"];
    let mut compiler = protox::Compiler::new([folder])?;
    compiler.include_imports(true).include_source_info(true).open_files(files)?;
    let set = std::path::Path::new(&std::env::var("OUT_DIR")?).join("descriptors");
    std::fs::write(&set, compiler.file_descriptor_set().encode_to_vec())?;
    connectrpc_build::Config::new()
        .files(&files)
        .descriptor_set(set)
        .generate_json(false)
        .include_file("made.rs")
        .emit_rerun_directives(false)
        .compile()?;
    Ok(())
}
