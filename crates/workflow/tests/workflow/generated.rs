//! Generated definitions: ours and ecFlow's module load them, and count the same nodes.

use std::fs::File;
use std::io::BufWriter;
use std::process::Command;

use tempfile::TempDir;
use workflow::definition::parse;
use workflow::load::{Counts, generate};

use crate::definition::{PYTHON, has_ecflow};

const COUNT: &str = "import ecflow, sys
defs = ecflow.Defs(sys.argv[1])
print(sum(1 for node in defs.get_all_nodes()), defs.check())";

#[test]
fn generated_definitions_are_loaded_by_both_with_the_nodes_that_were_meant() {
    let has_ecflow = has_ecflow();
    let folder = TempDir::new().expect("a folder");
    for scale in [0.001, 0.01, 0.1] {
        let (path, counts) = (folder.path().join("x.def"), Counts::scaled(scale).expect("a scale"));
        let file = BufWriter::new(File::create(&path).expect("a file"));
        generate(&counts, file).expect("written");
        let text = std::fs::read_to_string(&path).expect("a definition");
        let parsed = parse(&text, "x.def").unwrap_or_else(|error| panic!("{scale}: {error}"));
        assert_eq!(parsed.tree.count() as u64, counts.nodes(), "{scale}");
        if has_ecflow {
            let counted = Command::new(PYTHON).args(["-c", COUNT]).arg(&path).output();
            let counted = String::from_utf8(counted.expect("python starts").stdout).expect("text");
            assert_eq!(counted.trim(), counts.nodes().to_string(), "{scale}");
        }
    }
}
