//! Any text as a .proto file: it is refused in words, or the methods of its services are found.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rpc::client::Schema;

/// Where the text lies while it is read: a name that no other process has.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("rpc_proto_{}.proto", std::process::id())));

fuzz_target!(|text: &str| {
    std::fs::write(&*FILE, text).expect("written");
    match Schema::of_files(std::slice::from_ref(&*FILE), &[]) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(schema) => {
            for name in &schema.services {
                let service = schema.service(name).expect("it is listed");
                for method in service.methods() {
                    let written = format!("{name}/{}", method.name());
                    schema.method(&written).expect("it is there");
                }
            }
        }
    }
});
