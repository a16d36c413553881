//! Scripts: whatever they say, a job is made or an error, within the limits.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use workflow::script::{Files, Level, Located, MAX_JOB_BYTES, Origin, Scope, Source, job};

/// One file, whatever it is called.
struct One<'a>(&'a [u8]);

impl Files for One<'_> {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }

    fn exists(&self, path: &str) -> bool {
        path.len() % 2 == 0
    }

    fn is_directory(&self, path: &str) -> bool {
        path.len() % 3 == 0
    }

    fn output(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let user = vec![pair("A", "%B%%B%"), pair("B", "%A"), pair("ECF_HOME", "/h"), pair("V", "v")];
    let scope = Scope::new(vec![Level { user, generated: vec![pair("ECF_NAME", "/t/a")] }]);
    let script = Located { origin: Origin::Script, text: "/h/t/a.ecf".to_owned() };
    let source = Source { node: "/t/a", script: &script, lines: None, edited: &[] };
    if let Ok(made) = job(&One(bytes), &scope, source) {
        assert!(made.bytes.len() <= MAX_JOB_BYTES);
    }
});
