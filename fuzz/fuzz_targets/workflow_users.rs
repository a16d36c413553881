//! Any text as a white list and as a password file: it is refused with a line of it, or it says who
//! may do what; who may change a node may read it, and what is no one's password is no one's.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::protocol::{Body, Command, NodeCommand, Request, User};
use workflow::server::{Lists, Passwords};

/// Whether an error names a line of the text.
fn names_a_line(why: &str, text: &str) -> bool {
    let line = why.strip_prefix("f:").and_then(|why| why.split(':').next()).map(str::parse);
    // Of an empty file the first; of one without a line of this server none.
    matches!(line, Some(Ok(line)) if (1..=text.lines().count().max(1)).contains(&line))
        || why.contains("no line has this server's host and port")
}

fuzz_target!(|input: (&str, &str, &str)| {
    let (text, user, path) = input;
    match Lists::parse(text, "f") {
        Err(why) => assert!(names_a_line(&why, text), "{why}"),
        Ok(lists) => {
            let may = |command| {
                let user = User { name: user.to_owned(), ..User::default() };
                let body = Body::User(user, command);
                lists.check(&Request { host: String::new(), body }).is_ok()
            };
            let paths = vec![path.to_owned()];
            let reads = may(Command::Node(NodeCommand::Get, path.to_owned()));
            assert!(reads || !may(Command::Delete { paths, force: false }));
        }
    }
    match Passwords::parse(text, "f", ("h", 1)) {
        Err(why) => assert!(names_a_line(&why, text), "{why}"),
        Ok(passwords) => assert!(!passwords.is_right(user, "")),
    }
});
