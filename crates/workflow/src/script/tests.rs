//! The rules of scripts, as ecFlow 5.9.2 was seen to apply them.

use std::collections::HashMap;
use std::io;

use super::{
    Files, Level, Located, Origin, Scope, Source, edit, job, locate, manual, pre_process,
    pre_process_own,
};

#[derive(Default)]
struct Made(HashMap<&'static str, &'static [u8]>);

impl Files for Made {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.get(path).map(|text| text.to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &str) -> bool {
        self.0.contains_key(path) || self.is_directory(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        !path.is_empty() && self.0.keys().any(|file| file.starts_with(&folder))
    }

    fn output(&self, command: &str) -> io::Result<Vec<u8>> {
        self.read(command)
    }
}

fn scope() -> Scope {
    Scope::new(levels())
}

fn levels() -> Vec<Level> {
    let all = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    vec![
        Level {
            user: all(&[("V", "value"), ("W", "<%V%>"), ("EMPTY", ""), ("TASK", "mine")]),
            generated: all(&[
                ("TASK", "a"),
                ("ECF_TRYNO", "2"),
                ("ECF_SCRIPT", "/h/t/f/a.ecf"),
                ("ECF_JOB", "/h/t/f/a.job2"),
            ]),
        },
        Level { user: all(&[("ECF_TRYNO", "7")]), generated: all(&[("FAMILY", "f")]) },
        Level { user: all(&[("X", "%X%"), ("INC", "i.h")]), generated: all(&[("SUITE", "t")]) },
        Level { user: all(&[("ECF_HOME", "/h"), ("ECF_MICRO", "%")]), generated: Vec::new() },
    ]
}

fn made(script: &str, files: &[(&'static str, &'static str)]) -> Result<String, String> {
    let files = Made(files.iter().map(|(path, text)| (*path, text.as_bytes())).collect());
    let located = Located { origin: Origin::Script, text: "/h/t/f/a.ecf".to_owned() };
    let lines: Vec<_> = script.lines().map(str::to_owned).collect();
    let source = Source { node: "/t/f/a", script: &located, lines: Some(&lines), edited: &[] };
    job(&files, &scope(), source).map(|job| String::from_utf8(job.bytes).expect("text"))
}

#[test]
fn lines_become_what_ecflow_makes_of_them() {
    for (script, meant) in [
        ("v %V% %NO:def% e %EMPTY% %%", "v value def e  %"),
        ("%W%", "<value>"),
        ("try %ECF_TRYNO% of %TASK%", "try 2 of mine"),
        ("date +%%Y%%m %V%", "date +%Y%m value"),
        ("%%%V%%%%% %%%%", "%value%% %%"),
        ("a\n%comment\n%NOPE%\n%end\nb", "a\nb"),
        ("a\n%manual\nman %V%\n%end\nb", "a\nb"),
        ("%nopp\n%V% 50%\n%comment\nx\n%end\n%end\nb", "%V% 50%\n%comment\nx\n%end\nb"),
        ("%ecfmicro &\n&V& %V% 50%\n&ecfmicro %\n%V%", "value %V% 50%\nvalue"),
        ("a # 50% of it", "a # 50% of it"),
        ("# 100%", "# 100%"),
    ] {
        assert_eq!(made(script, &[]).as_deref(), Ok(meant), "{script}");
    }
}

#[test]
fn a_line_of_doubled_marks_takes_as_long_as_its_bytes() {
    // A rest that was moved for each pair took hours.
    let pairs = "%%".repeat(4 << 20);
    assert!(made(&pairs, &[]).is_ok_and(|job| job.len() == 4 << 20));
}

#[test]
fn what_ecflow_refuses_is_refused_in_its_words() {
    for (script, part) in [
        ("x %NOPE%", "EcfFile::variableSubstitution: failed : 'x %NOPE%'"),
        ("%X%", "EcfFile::variableSubstitution: failed : '%X%'"),
        (
            "at 50% of it",
            "Failed preprocessing : TASK:/t/f/a : path/cmd(/h/t/f/a.ecf)\n: Mismatched",
        ),
        ("%comment\nx", "Unterminated comment, matching 'end' is missing"),
        ("%manual", "Unterminated manual, matching 'end' is missing"),
        ("%nopp", "Unterminated nopp, matching 'end' is missing"),
        ("%end", "%end found with no matching"),
        ("%include <no.h>", "Could not open include file: /h/no.h"),
        ("%wrong", "unrecognised pre-processing directive at: '%wrong'"),
        ("%comment\n%end", "is empty"),
    ] {
        let said = made(script, &[]).expect_err(script);
        assert!(said.contains(part), "{script}: {said}");
    }
}

#[test]
fn includes_that_double_with_each_file_end_after_ten_thousand() {
    let names: Vec<[String; 2]> = (0..30)
        .map(|number| [number, number + 1].map(|number| format!("/h/n{number}.h")))
        .collect();
    let twice = |name: &str| format!("%include {name}\n%include {name}\n").leak() as &'static str;
    let mut files: Vec<(&'static str, &'static str)> = Vec::new();
    for [own, next] in &names {
        files.push((own.clone().leak(), twice(next)));
    }
    files.push(("/h/n30.h", ""));
    let said = made("%include /h/n0.h", &files).expect_err("endless");
    assert!(said.contains("the job includes more than 10000 files"), "{said}");
}

#[test]
fn includes_are_found_where_they_are_searched() {
    let files = [
        ("/h/i.h", "in %V%"),
        ("/h/t/f/q.h", "quoted"),
        ("/h/t/f/./own.h", "own"),
        ("/h/t/f/../up.h", "up"),
        ("/abs.h", "absolute"),
        ("/h/self.h", "%include <self.h>"),
        ("/h/raw.h", "%V% 50%"),
        ("/h/open.h", "%nopp"),
    ];
    for (script, meant) in [
        ("a\n%include <i.h>\nb", "a\nin value\nb"),
        ("%include <%INC%>", "in value"),
        ("%include \"q.h\"", "quoted"),
        ("%include \"./own.h\"", "own"),
        ("%include \"../up.h\"", "up"),
        ("%include </abs.h>", "absolute"),
        ("%include /abs.h", "absolute"),
        ("%includeonce <i.h>\n%includeonce <i.h>\nx", "in value\nx"),
        ("%includenopp <raw.h>", "%V% 50%"),
    ] {
        assert_eq!(made(script, &files).as_deref(), Ok(meant), "{script}");
    }
    for (script, part) in [
        ("%include <self.h>", "Recursive include of file /h/self.h for /h/t/f/a.ecf"),
        ("%include <open.h>", "Unterminated nopp"),
        ("%include \"i.h\"", "Could not open include file: /h/t/f/i.h"),
    ] {
        let said = made(script, &files).expect_err(script);
        assert!(said.contains(part), "{script}: {said}");
    }
}

#[test]
fn a_job_cannot_grow_without_bounds() {
    let files = [
        ("/h/a.h", "%include <b.h>\n%include <b.h>"),
        ("/h/b.h", "%include <c.h>\n%include <c.h>"),
        ("/h/c.h", "x"),
    ];
    assert_eq!(made("%include <a.h>", &files).as_deref(), Ok("x\nx\nx\nx"));
    let mut levels = levels();
    let doubled = ("D".to_owned(), "%D2%%D2%".to_owned());
    levels[0].user.extend([doubled, ("D2".to_owned(), "%D%%D%".to_owned())]);
    assert_eq!(super::substitute(b"%D%", &Scope::new(levels), &[], b"%"), None);
}

#[test]
fn a_script_is_looked_for_from_ecf_script_to_ecf_home() {
    let files =
        |paths: &[&'static str]| Made(paths.iter().map(|path| (*path, &b"x"[..])).collect());
    let found = |paths: &[&'static str], more: &[(&str, &str)]| {
        let mut levels = levels();
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        levels[3].user.extend(more);
        locate(&files(paths), &Scope::new(levels), "/t/f/a").map(|found| found.text)
    };
    assert_eq!(found(&["/h/t/f/a.ecf", "/h/a.ecf"], &[]).as_deref(), Ok("/h/t/f/a.ecf"));
    assert_eq!(found(&["/h/f/a.ecf", "/h/a.ecf"], &[]).as_deref(), Ok("/h/f/a.ecf"));
    assert_eq!(found(&["/s/a.ecf", "/h/a.ecf"], &[("ECF_FILES", "/s")]).as_deref(), Ok("/s/a.ecf"));
    let leaf = [("ECF_FILES", "/s"), ("ECF_FILES_LOOKUP", "prune_leaf")];
    assert_eq!(found(&["/s/t/a.ecf", "/s/f/a.ecf"], &leaf).as_deref(), Ok("/s/t/a.ecf"));
    assert_eq!(found(&[], &[("ECF_SCRIPT_CMD", "cat %TASK%")]).as_deref(), Ok("cat mine"));
    let said = found(&["/h/x"], &[]).expect_err("none");
    let meant = "   Script for /t/f/a cannot be found:\n   \
                 ECF_SCRIPT(/h/t/f/a.ecf) does not exist:\n   Variable ECF_FETCH not defined:\n   \
                 Variable ECF_SCRIPT_CMD not defined:\n   Variable ECF_FILES not defined:\n   \
                 Search of directory ECF_HOME(/h) failed using prune_root:\n";
    assert_eq!(said, meant);
}

#[test]
fn a_manual_and_the_used_variables_are_found() {
    let script = "%manual\nof %TASK% %NOPE%\n%end\n%nopp\n%NO%\n%end\n%ecfmicro &\necho &V& &N:d& \
                  &ECF_PASS:x& 100%%\n";
    let files = Made([("/h/t/f/a.ecf", script.as_bytes())].into());
    let located = Located { origin: Origin::Script, text: "/h/t/f/a.ecf".to_owned() };
    let source = Source { node: "/t/f/a", script: &located, lines: None, edited: &[] };
    assert_eq!(manual(&files, &scope(), source).as_deref(), Ok(&b"of %TASK% %NOPE%\n"[..]));
    let edited = edit(&files, &scope(), source).expect("read");
    let value = scope().any("V").expect("a value").to_owned();
    let head = "%comment - ecf user variables\nN:d = d\n";
    let meant = format!("{head}V = {value}\n%end - ecf user variables\n{script}");
    assert_eq!(String::from_utf8_lossy(&edited), meant);
    let own = ["%include <none.h>".to_owned()];
    let source = Source { lines: Some(&own), ..source };
    let why = pre_process(&files, &scope(), source).expect_err("no such file");
    assert!(why.contains("none.h"), "{why}");
    let own = ["%comment".to_owned(), "x %NO%".to_owned(), "%end".to_owned(), "y &V".to_owned()];
    let source = Source { lines: Some(&own), ..source };
    assert_eq!(pre_process_own(&files, &scope(), source).as_deref(), Ok(&b"y &V\n"[..]));
    let own = ["x %NO%".to_owned()];
    let source = Source { lines: Some(&own), ..source };
    let why = edit(&files, &scope(), source).expect_err("no value");
    assert!(why.contains("Variable find failed for 'x %NO%'  microChar='%' "), "{why}");
}
