//! Small programs of our own around a peer's libraries, compiled into `target/peers`: those in C++
//! against the libraries of Python's registry, those in Rust by cargo, each a workspace of its own,
//! those in C by Open MPI's compiler.
//! They are built again when a source is newer than what was built of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use super::python;
use super::table::Program;
use crate::process;

/// Packages of Python's registry that bring headers and libraries: their folders.
const LIBRARIES: [&str; 2] = ["pvxslibs", "epicscorelibs"];

/// Where the program is, once it is built.
pub(crate) fn path(target: &Path, program: &Program) -> PathBuf {
    target.join("peers").join(&program.program)
}

/// Whether the program is there and no older than its sources.
pub(crate) fn is_current(repository: &Path, target: &Path, program: &Program) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(built) = modified(&path(target, program)) else { return false };
    let source = repository.join(&program.source);
    let folder = source.parent().unwrap_or(repository);
    let beside = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut sources: Vec<PathBuf> = beside.map(|entry| entry.path()).collect();
    sources.push(source);
    let newest = sources.iter().filter_map(|source| modified(source)).max();
    newest.unwrap_or(SystemTime::UNIX_EPOCH) <= built
}

/// Compiles the program.
pub(crate) fn build(repository: &Path, target: &Path, program: &Program) -> Result<()> {
    fs::create_dir_all(target.join("peers")).context("cannot make target/peers")?;
    match Path::new(&program.source).extension().and_then(|extension| extension.to_str()) {
        Some("toml") => build_rust(repository, target, program),
        Some("c") => build_mpi(repository, target, program),
        _ => build_cpp(repository, target, program),
    }
}

/// Compiles a package of Rust with the versions of its lock file.
fn build_rust(repository: &Path, target: &Path, program: &Program) -> Result<()> {
    let place = target.join("peers/cargo");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(repository.join(&program.source)).arg("--target-dir").arg(&place);
    process::run(&mut cargo)?;
    let built = place.join("release").join(&program.program);
    fs::copy(&built, path(target, program))
        .with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}

/// Compiles a source in C for MPI.
fn build_mpi(repository: &Path, target: &Path, program: &Program) -> Result<()> {
    if process::find("mpicc").is_none() {
        bail!("{} needs mpicc, which libopenmpi-dev brings", program.program);
    }
    let mut compiler = Command::new("mpicc");
    compiler.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-o"]).arg(path(target, program));
    process::run(compiler.arg(repository.join(&program.source)))
}

/// Compiles a source in C++ against the libraries in its service's environment.
fn build_cpp(repository: &Path, target: &Path, program: &Program) -> Result<()> {
    if process::find("g++").is_none() {
        bail!("{} needs g++; bring it with your package manager", program.program);
    }
    let environment = python::folder(target, &program.service);
    let site = python::site_packages(&environment)
        .with_context(|| format!("{} needs the packages of its service", program.program))?;
    let out = path(target, program);
    let mut compiler = Command::new("g++");
    // The wheels are built with the C++ interface of before GCC 5.
    compiler.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-D_GLIBCXX_USE_CXX11_ABI=0"]);
    for library in LIBRARIES {
        compiler.arg("-isystem").arg(site.join(library).join("include"));
    }
    compiler.arg(repository.join(&program.source)).arg("-o").arg(&out);
    for library in LIBRARIES {
        let folder = site.join(library).join("lib");
        compiler.arg(format!("-L{}", folder.display()));
        compiler.arg(format!("-Wl,-rpath,{}", folder.display()));
    }
    // Each program takes what it uses: pvxs, or pvAccessCPP.
    compiler.args(["-Wl,--as-needed", "-lpvxs", "-levent_core", "-levent_pthread"]);
    compiler.args(["-lpvAccess", "-lpvData", "-lCom", "-lpthread"]);
    process::run(&mut compiler)
}
