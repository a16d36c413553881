//! Encrypted connections, with the files that ecFlow's manual has one make.

use std::process::{Command, Stdio};

use testing::program;

use crate::commands::Running;
use crate::place::Place;
use crate::served::Served;

/// Makes a key and a certificate as ecFlow's manual says, with openssl.
fn certificate(place: &Place) -> String {
    let folder = place.write("user/.ecflowrc/ssl/made", "");
    let folder = folder.parent().expect("a folder");
    let steps = "openssl genrsa -out server.key 2048 && \
                 openssl req -new -key server.key -subj /CN=$(hostname) -out server.csr && \
                 openssl x509 -req -days 9 -in server.csr -signkey server.key -out server.crt && \
                 openssl dhparam -dsaparam -out dh2048.pem 2048";
    let mut shell = Command::new("sh");
    shell.args(["-c", steps]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(shell.status().expect("a shell").success(), "openssl");
    place.home().with_file_name("user").display().to_string()
}

/// What a server's clients see of encryption.
fn seen(place: &Place, user: &str) -> Vec<String> {
    let file = place.write("s.def", "suite s\n  task t\n    label l \"\"\nendsuite\n");
    place.script("t", "ecflow_client --label=l \"$ECF_SSL\"");
    // The job's own client encrypts, too.
    place.write(
        "home/head.h",
        &std::fs::read_to_string(place.home().join("head.h"))
            .expect("a head")
            .replace("set -e", "export ECF_SSL=%ECF_SSL%\nset -e"),
    );
    let load = format!("--load={}", file.display());
    let told = |words: &[&str]| {
        let output = place.client_of(words, &[("HOME", user), ("ECF_SSL", "1")]);
        assert!(output.status.success(), "{words:?} {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let plain = place.client(&["--ping"]);
    assert!(!plain.status.success(), "unencrypted");
    for words in [&[&load[..]][..], &["--restart"], &["--begin=s"], &["--ping", "--ssl"]] {
        told(words);
    }
    place.until("/s complete", || told(&["--query", "state", "/s"]).trim() == "complete");
    let stats = told(&["--stats"]);
    let line = stats.lines().find(|line| line.contains("ECF_SSL")).unwrap_or_default();
    let state = told(&["--get_state"]);
    let variable = state.lines().find(|line| line.contains("edit ECF_SSL"));
    let label = told(&["--query", "label", "/s/t:l"]);
    of_commands(place, user);
    [line, variable.unwrap_or_default(), &label].map(|text| text.trim().to_owned()).into()
}

/// This program's commands encrypt, too, and trust that certificate alone.
fn of_commands(place: &Place, user: &str) {
    let at = format!("localhost:{}", place.port);
    let ask = |words: &[&str], more: &[(&str, &str)]| {
        let words = [&["get", &at, "/s"], words].concat();
        Running::start_with(&words, &[&[("HOME", user)], more].concat()).end()
    };
    for (words, more) in [(&["--ssl"][..], &[][..]), (&[], &[("ECF_SSL", "1")])] {
        let (out, error, code) = ask(words, more);
        assert!(code == 0 && out.contains("suite s"), "{out}{error}");
    }
    let (_, error, code) = ask(&[], &[]);
    assert!(code == 1 && error.contains("--ssl"), "{error}");
    // A process of several requests.
    let file = place.write("again.def", "suite again\n  task t\n    trigger 1 == 0\nendsuite\n");
    let file = file.display().to_string();
    let words = ["load", &at, &file, "--force", "--begin", "--ssl"];
    let (out, error, code) = Running::start_with(&words, &[("HOME", user)]).end();
    assert!(code == 0, "{out}{error}");
    let other = Place::new();
    let other = format!("{}/.ecflowrc/ssl/server.crt", certificate(&other));
    let (_, error, code) = ask(&["--tls-ca", &other], &[]);
    assert!(code == 1 && error.contains("certificate"), "{error}");
}

#[test]
fn clients_and_jobs_of_ecflow_talk_encrypted_with_the_files_of_its_manual() {
    if ["ecflow_client", "ecflow_server", "openssl"].iter().any(|name| program(name).is_none()) {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let user = certificate(&own);
    let served = Served::by_command(&own, &["--ssl"], &[("HOME", &user)]);
    let ours = seen(&own, &user);
    assert!(served.stop(), "it ends in good order");
    let served = Served::theirs_with(&other, &["--ssl"], &[("HOME", &user)]);
    assert_eq!(ours, seen(&other, &user));
    served.kill();
}
