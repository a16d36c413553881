//! Where peers lie, and how their absence is reported.

use std::path::{Path, PathBuf};

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn there(path: PathBuf, name: &str) -> Option<PathBuf> {
    if !path.exists() {
        testing::skip(format!("{name} is not installed (`cargo xtask peers` installs the peers)"));
        return None;
    }
    Some(path)
}

/// A program that came as a Go module; without it the test is skipped.
pub(crate) fn go(name: &str) -> Option<PathBuf> {
    there(target().join("peers/go").join(name), name)
}

/// A program that a package of the system brings; without it the test is skipped.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name));
    there(found.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into()), name)
}

/// A small program around a peer's library; without it the test is skipped.
pub(crate) fn built(name: &str) -> Option<PathBuf> {
    there(target().join("peers").join(name), name)
}

/// Where packages of Node's registry lie, if this one is among them; else the test is skipped.
pub(crate) fn node(package: &str) -> Option<PathBuf> {
    let modules = target().join("npm/rpc/node_modules");
    there(modules.join(package), package).map(|_| modules)
}

/// Python with grpcio; without it the test is skipped.
pub(crate) fn python() -> Option<PathBuf> {
    let environment = target().join("venv/rpc");
    let package = std::fs::read_dir(environment.join("lib")).ok().and_then(|mut all| {
        all.find_map(|entry| {
            let folder = entry.ok()?.path().join("site-packages/grpc_reflection");
            folder.is_dir().then_some(folder)
        })
    });
    let missing = environment.join("grpcio");
    there(package.unwrap_or(missing), "grpcio").map(|_| environment.join("bin/python"))
}

/// A file beside the tests.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rpc").join(name)
}
