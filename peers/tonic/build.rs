//! Makes the types and services of the .proto files that our own server has.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../crates/rpc/proto";
    println!("cargo:rerun-if-changed={folder}");
    let files = ["loadline/rpc/v1/table.proto", "grpc/testing/test.proto"];
    let descriptors = protox::compile(files, [folder])?;
    // Payloads and what is echoed are not copied, as in our own server.
    tonic_prost_build::configure()
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
