//! Passwords: who may ask, by ecFlow's own client, and in the words of ecFlow's server.

use std::os::unix::fs::PermissionsExt as _;

use testing::program;
use workflow::server::host_name;

use crate::place::Place;
use crate::served::{Served, refusal};

/// The user of the client: that of the login.
fn login() -> String {
    let id = std::process::Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8(id.stdout).expect("a name").trim().to_owned()
}

/// Writes a password file of the server, or a client's, and returns its path.
fn passwords(place: &Place, name: &str, lines: &[(&str, &str)]) -> String {
    let (host, port) = (host_name(), place.port);
    let mut text = "4.5.0 # version\n# users\n".to_owned();
    for (user, password) in lines {
        text.push_str(&format!("{user} {host} {port} {password} # a comment\n"));
    }
    place.write(name, &text).display().to_string()
}

fn server_file(place: &Place, kind: &str) -> String {
    format!("home/{}.{}.ecf.{kind}", host_name(), place.port)
}

/// What a client sees in each of several cases.
fn asked(place: &Place) -> Vec<String> {
    let user = login();
    let right = passwords(place, "right", &[(&user, "secret"), ("fred", "his")]);
    let wrong = passwords(place, "wrong", &[(&user, "guess"), ("fred", "hers"), ("anna", "x")]);
    let mut told = Vec::new();
    let mut ask = |arguments: &[&str], more: &[(&str, &str)]| {
        let output = place.client_of(arguments, more);
        let is_done = output.status.success();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace(&place.port.to_string(), "PORT");
        let text = text.replace(&place.home().display().to_string(), "HOME");
        let from = text.find("Server reply").unwrap_or(text.len());
        told.push(format!("{arguments:?} {is_done} {}", &text[from..]));
    };
    let commands: [&[&str]; 9] = [
        &["--ping"],
        &["--get=/x"],
        &["--get"],
        &["--suspend", "/a", "/b"],
        &["--alter=change", "variable", "A", "b", "/a"],
        &["--query", "state", "/a"],
        &["--restart"],
        &["--group=ping; suites"],
        &["--zombie_get"],
    ];
    for command in commands {
        ask(command, &[]);
        ask(command, &[("ECF_PASSWD", &wrong)]);
        ask(command, &[("ECF_CUSTOM_PASSWD", &wrong), ("ECF_USER", "anna")]);
    }
    for command in [&["--ping"][..], &["--suites"], &["--group=ping; suites"], &["--restart"]] {
        ask(command, &[("ECF_PASSWD", &right)]);
        ask(command, &[("ECF_CUSTOM_PASSWD", &right), ("ECF_USER", "fred")]);
        ask(command, &[("ECF_CUSTOM_PASSWD", &wrong), ("ECF_USER", "fred")]);
    }
    ask(&["--reloadpasswdfile"], &[("ECF_PASSWD", &right)]);
    ask(&["--reloadcustompasswdfile"], &[("ECF_PASSWD", &right)]);
    told
}

fn serve(place: &Place, start: impl Fn(&Place) -> Served) -> Vec<String> {
    let (user, login_file) = (login(), server_file(place, "passwd"));
    passwords(place, &login_file, &[(&user, "secret")]);
    let served = start(place);
    let mut told = asked(place);
    // The custom file comes later, and then another password.
    passwords(place, &server_file(place, "custom_passwd"), &[("fred", "his")]);
    told.extend(asked(place));
    passwords(place, &login_file, &[(&user, "another")]);
    told.extend(asked(place));
    served.kill();
    told
}

#[test]
fn who_is_not_in_the_password_file_is_refused_in_ecflows_words() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let ours = serve(&own, Served::ours);
    let theirs = serve(&other, Served::theirs);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_broken_password_file_changes_nothing_and_a_server_does_not_start_with_it() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let user = login();
    let file = server_file(&place, "passwd");
    let right = passwords(&place, &file, &[(&user, "secret")]);
    let right = std::fs::copy(&right, place.home().join("right")).map(|_| place.home());
    let right = right.expect("copied").join("right").display().to_string();
    let served = Served::ours(&place);
    let with = |arguments: &[&str]| place.client_of(arguments, &[("ECF_PASSWD", &right)]);
    let broken = place.write(&file, "4.5.0\nfred here port hush\n").display().to_string();
    let said = with(&["--reloadpasswdfile"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains(&format!("{broken}:2: \"port\" is no port")), "{said}");
    // ecFlow's server lets all users in from here on.
    assert!(with(&["--ping"]).status.success());
    assert!(!place.client(&["--ping"]).status.success());
    served.kill();
    let why = refusal(&place.home(), place.port);
    assert!(why.contains(&format!("{broken}:2: \"port\" is no port")), "{why}");
    assert!(!why.contains("hush"), "{why}");
}

#[test]
fn a_name_of_ones_choice_is_no_way_around_the_passwords_of_logins() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    passwords(&place, &server_file(&place, "passwd"), &[(&login(), "secret")]);
    let served = Served::ours(&place);
    for (password, custom) in [("", "true"), ("", "false"), ("*0", "true"), ("*0", "false")] {
        let document = format!(
            "{{\"x\":{{\"cmd_\":{{\"polymorphic_id\":2147483649,\"polymorphic_name\":\"CtsCmd\",\
             \"ptr_wrapper\":{{\"id\":2147483649,\"data\":{{\"cereal_class_version\":0,\"value0\":\
             {{\"cereal_class_version\":0,\"value0\":{{\"cereal_class_version\":0,\"cl_host_\":\
             \"vm\"}},\"user_\":\"a\",\"pswd_\":\"{password}\",\"cu_\":{custom}}},\"api_\":8\
             }}}}}}}}}}"
        );
        let said = crate::hostile::framed(place.port, document.as_bytes());
        assert!(said.contains("User 'a' is not allowed any access."), "{said}");
    }
    served.kill();
}

#[test]
fn the_hashes_in_the_journal_are_for_the_servers_user_alone() {
    let place = Place::new();
    let served = Served::by_command(&place, &[], &[]);
    let own = std::fs::metadata(place.home().join(".loadline")).expect("a folder");
    assert_eq!(own.permissions().mode() & 0o777, 0o700);
    assert!(served.stop(), "it ends in good order");
}
