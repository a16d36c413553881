//! `unsafe` is kept to the files listed here, each with the reason why it cannot be had
//! otherwise.

use super::Rule;
use crate::tidy::names::keyword;
use crate::tidy::tree::{Finding, Tree};

/// The files that may hold `unsafe`, and why.
const FILES: &[(&str, &str)] = &[
    (
        "crates/base/src/allocations.rs",
        "an allocator is unsafe by its trait: the library that counts copies what grows and writes \
         what is wanted zeroed, in every service",
    ),
    (
        "crates/cache/src/model/prefetch.rs",
        "asking for memory ahead: a pipelined get of 1,000,000 items of 100 bytes takes 128 ns of \
         the connection's time, 215 ns when the memory is read ahead instead, and 437 ns without \
         either",
    ),
    (
        "crates/wire/src/uring.rs",
        "io_uring takes addresses of buffers: one submission receives, or sends, for up to 64 \
         connections; the cache uses it wherever the kernel allows it (`--io auto`)",
    ),
    (
        "crates/conditions/src/server/map.rs",
        "data larger than memory are read where the system maps them: a file that another process \
         cuts meanwhile can't be excluded by types",
    ),
    (
        "crates/rpc/src/shm/memory.rs",
        "memory that both ends of a connection share is mapped by the system, which gives a \
         pointer: a call needs no system call where both ends run",
    ),
    (
        "crates/rpc/src/mpi/library.rs",
        "MPI is a library of C, opened at run time so that the program starts without it: its \
         functions are called by their addresses, and have buffers while messages are on their way",
    ),
    (
        "crates/records/src/shared.rs",
        "memory that processes share is mapped by the system, which gives a pointer: through it \
         clients of the same host get arrays of 80 MB without a copy",
    ),
    (
        "crates/workflow/src/load/rungs/kernel.rs",
        "rungs of the ladder of checkpoints: pages that are mapped, and bytes whose addresses are \
         given to POSIX AIO and io_uring",
    ),
    (
        "crates/base/src/memory.rs",
        "two functions of the C library give freed memory back to the system, which it keeps \
         otherwise: 250 MB after 320,830 nodes are deleted",
    ),
    (
        "crates/workflow/src/slices.rs",
        "the length of a thread's slices of its core is set by a call of the system that has no \
         safe form in a library: beside three busy programs on its core a thread that answers \
         waits 4 ms each time that it has something to do, and 13 ms otherwise",
    ),
];

pub(super) const RULE: Rule = Rule {
    name: "unsafety",
    doc: "`unsafe` stands only in the files that the rule's table lists, each with its reason.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    check_but(tree, FILES)
}

fn check_but(tree: &Tree, listed: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let lines = keyword(file, "unsafe");
        let is_listed = listed.iter().any(|(path, _)| *path == file.path);
        if is_listed && lines.is_empty() {
            found.push(file.finding(1, "take this file off the table: it has no `unsafe`"));
        }
        for line in lines.into_iter().filter(|_| !is_listed) {
            let advice = "do without `unsafe`, or list the file with the reason in unsafety.rs";
            found.push(file.finding(line, advice));
        }
    }
    // A tree without the file's crate, such as a test's, is not checked.
    let crate_of = |path: &str| path.split("/src/").next().unwrap_or(path).to_owned();
    let has_crate = |path: &str| tree.files().any(|file| file.path.starts_with(&crate_of(path)));
    let gone = |path: &str| tree.file(path).is_none() && has_crate(path);
    for (path, _) in listed.iter().filter(|(path, _)| gone(path)) {
        let advice = "take this file off the table: it is gone".to_owned();
        found.push(Finding { path: (*path).to_owned(), line: 1, advice });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listed_file_is_unsafe_and_every_listed_one_is() {
        let tree = Tree::of(&[
            ("x/src/a.rs", "// unsafe\nfn f() { unsafe { g() } }\n"),
            ("x/src/b.rs", "fn f() {}\n"),
        ]);
        let found = check_but(&tree, &[]);
        assert_eq!((found.len(), found[0].line), (1, 2));
        assert!(check_but(&tree, &[("x/src/a.rs", "a reason")]).is_empty());
        let found = check_but(&tree, &[("x/src/a.rs", ""), ("x/src/b.rs", ""), ("x/src/c.rs", "")]);
        let paths: Vec<_> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["x/src/b.rs", "x/src/c.rs"]);
    }
}
