//! Where a task's script is.

use super::{Files, Scope, substitute};

/// How the scripts of aliases end.
const ALIAS_EXTENSION: &str = ".usr";

/// How the manuals of suites and families end, which have no script.
const MANUAL_EXTENSION: &str = ".man";

/// By which variable a script was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file that is where ECF_SCRIPT says.
    Script,
    /// A file below ECF_FILES or ECF_HOME; the text is how it was searched.
    Searched(&'static str),
    /// What ECF_FETCH prints.
    Fetch,
    /// What ECF_SCRIPT_CMD prints.
    Command,
}

/// The variables of commands that print scripts.
const PRINTING: [(&str, Origin); 2] =
    [("ECF_FETCH", Origin::Fetch), ("ECF_SCRIPT_CMD", Origin::Command)];

/// Whether a command may print the script of a node with these variables.
#[must_use]
pub fn may_be_printed<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> bool {
    PRINTING.iter().any(|(name, _)| variable(name).is_some_and(|command| !command.is_empty()))
}

/// A script's path, or the command that prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// How it was found.
    pub origin: Origin,
    /// The path or command.
    pub text: String,
}

/// Looks for the script of the task at `node`, or for the manual of a suite or family.
///
/// # Errors
/// As ecFlow says it, with every place where it was looked for.
pub fn locate<F: Files>(files: &F, scope: &Scope, node: &str) -> Result<Located, String> {
    let mut missing = String::new();
    let script = scope.generated("ECF_SCRIPT").unwrap_or_default();
    let extension = if script.is_empty() {
        MANUAL_EXTENSION
    } else if script.ends_with(ALIAS_EXTENSION) {
        ALIAS_EXTENSION
    } else {
        scope.user("ECF_EXTN").filter(|one| !one.is_empty()).unwrap_or(".ecf")
    };
    if files.exists(script) {
        return Ok(Located { origin: Origin::Script, text: script.to_owned() });
    }
    missing.push_str(&format!("   ECF_SCRIPT({script}) does not exist:\n"));
    for (name, origin) in PRINTING {
        match scope.any(name).filter(|command| !command.is_empty()) {
            None => missing.push_str(&format!("   Variable {name} not defined:\n")),
            Some(command) => match with_values(command, scope) {
                Some(text) => return Ok(Located { origin, text }),
                None => {
                    return Err(format!(
                        "{missing}   Variable {name}({command}) defined, but variable \
                         substitution has failed:\n"
                    ));
                }
            },
        }
    }
    match search_folders(files, scope, (node, extension), &mut missing) {
        Some(found) => Ok(found),
        None => Err(format!("   Script for {node} cannot be found:\n{missing}")),
    }
}

/// Looks below ECF_FILES and ECF_HOME; says in `missing` where there was nothing.
fn search_folders<F: Files>(
    files: &F,
    scope: &Scope,
    (node, extension): (&str, &str),
    missing: &mut String,
) -> Option<Located> {
    let is_leaf =
        scope.user("ECF_FILES_LOOKUP").is_some_and(|way| way.eq_ignore_ascii_case("prune_leaf"));
    let (way, named) =
        if is_leaf { ("PRUNE_LEAF", "prune_leaf") } else { ("PRUNE_ROOT", "prune_root") };
    let search = |folder: &str| {
        let names: Vec<&str> = node.split('/').filter(|name| !name.is_empty()).collect();
        let paths = (0..names.len()).map(|pruned| {
            let kept = if is_leaf {
                let parents = names.len() - 1 - pruned;
                [&names[..parents], &names[names.len() - 1..]].concat()
            } else {
                names[pruned..].to_vec()
            };
            format!("{folder}/{}{extension}", kept.join("/"))
        });
        let found = paths.into_iter().find(|path| files.exists(path));
        found.map(|text| Located { origin: Origin::Searched(way), text })
    };
    match scope.user("ECF_FILES") {
        None => missing.push_str("   Variable ECF_FILES not defined:\n"),
        Some(folder) => {
            let with_values = with_values(folder, scope).unwrap_or_else(|| folder.to_owned());
            let is_there = files.is_directory(folder);
            let used = if is_there { folder } else { with_values.as_str() };
            if is_there || files.is_directory(used) {
                if let Some(found) = search(used) {
                    return Some(found);
                }
                missing.push_str(&if is_there {
                    format!("   Search of directory ECF_FILES({folder}) failed using {named}:\n")
                } else {
                    format!(
                        "   Search of directory ECF_FILES(variable substituted)({used}) failed:\n"
                    )
                });
            } else {
                missing.push_str(&format!("   Directory ECF_FILES({folder}) does not exist:\n"));
                if used != folder {
                    missing.push_str(&format!(
                        "   Directory ECF_FILES({used}) after variable substitution does not \
                         exist:\n"
                    ));
                }
            }
        }
    }
    let home = scope.user("ECF_HOME").unwrap_or_default();
    if files.is_directory(home) {
        if let Some(found) = search(home) {
            return Some(found);
        }
        missing
            .push_str(&format!("   Search of directory ECF_HOME({home}) failed using {named}:\n"));
    } else {
        missing.push_str(&format!("   Directory ECF_HOME({home}) does not exist:\n"));
    }
    None
}

/// A value with the values of the variables that it names.
fn with_values(text: &str, scope: &Scope) -> Option<String> {
    let micro = scope.user("ECF_MICRO").unwrap_or("%");
    let bytes = substitute(text.as_bytes(), scope, &[], micro.as_bytes())?;
    String::from_utf8(bytes).ok()
}
