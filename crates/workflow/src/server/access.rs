//! Who may ask what: passwords first, then the white list.

use super::environment::Environment;
use super::lists::{self, Lists, refused};
use super::passwords::Passwords;
use crate::protocol::{Body, Command, Request, ServerCommand};

/// What the files of users say.
#[derive(Debug, Default)]
pub(super) struct Access {
    lists: Lists,
    login: Option<Passwords>,
    custom: Option<Passwords>,
}

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Lists,
    Passwords,
    CustomPasswords,
}

/// What was read of one.
#[derive(Debug)]
pub(super) enum Loaded {
    Lists(Lists),
    Passwords(Passwords),
    CustomPasswords(Passwords),
}

impl Part {
    /// The file that a command has read again.
    pub(super) fn reloaded_by(command: ServerCommand) -> Option<Self> {
        match command {
            ServerCommand::ReloadWhiteList => Some(Self::Lists),
            ServerCommand::ReloadPasswords => Some(Self::Passwords),
            ServerCommand::ReloadCustomPasswords => Some(Self::CustomPasswords),
            _ => None,
        }
    }

    /// Reads the file, which has to be there.
    ///
    /// # Errors
    /// When it isn't, or a line is wrong; the error names file, line and value.
    pub(super) fn read_again(self, environment: &Environment) -> Result<Loaded, String> {
        let (variable, file) = self.file(environment);
        self.read(environment)?.ok_or_else(|| {
            let folder = environment.home.display();
            format!("The {variable} file {file} does not exist. Server CWD : {folder}")
        })
    }

    fn file(self, environment: &Environment) -> (&'static str, &str) {
        match self {
            Self::Lists => ("ECF_LISTS", &environment.lists),
            Self::Passwords => ("ECF_PASSWD", &environment.passwords),
            Self::CustomPasswords => ("ECF_CUSTOM_PASSWD", &environment.custom_passwords),
        }
    }

    fn read(self, environment: &Environment) -> Result<Option<Loaded>, String> {
        let path = environment.home.join(self.file(environment).1);
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // What can't be looked at might restrict.
            Err(why) => return Err(format!("{}: {why}", path.display())),
        }
        let bytes = base::read_regular(&path, lists::MAX_BYTES).map_err(|why| why.to_string())?;
        let text = base::into_text(&path, bytes).map_err(|why| why.to_string())?;
        let file = path.display().to_string();
        let passwords = || Passwords::parse(&text, &file, (&environment.host, environment.port));
        Ok(Some(match self {
            Self::Lists => Loaded::Lists(Lists::parse(&text, &file)?),
            Self::Passwords => Loaded::Passwords(passwords()?),
            Self::CustomPasswords => Loaded::CustomPasswords(passwords()?),
        }))
    }
}

impl Access {
    /// Reads the files that are there.
    ///
    /// # Errors
    /// When a line is wrong; the error names file, line and value.
    pub(super) fn read(environment: &Environment) -> Result<Self, String> {
        let mut access = Self::default();
        for part in [Part::Lists, Part::Passwords, Part::CustomPasswords] {
            if let Some(loaded) = part.read(environment)? {
                access.take(loaded);
            }
        }
        Ok(access)
    }

    /// Uses what was read from now on.
    pub(super) fn take(&mut self, loaded: Loaded) {
        match loaded {
            Loaded::Lists(lists) => self.lists = lists,
            Loaded::Passwords(passwords) => self.login = Some(passwords),
            Loaded::CustomPasswords(passwords) => self.custom = Some(passwords),
        }
    }

    /// Whether a request may be carried out.
    ///
    /// # Errors
    /// In ecFlow's words, when it may not.
    pub(super) fn check(&self, request: &Request) -> Result<(), String> {
        self.check_password(request)?;
        self.lists.check(request)
    }

    fn check_password(&self, request: &Request) -> Result<(), String> {
        let Body::User(user, command) = &request.body else { return Ok(()) };
        if let Command::Group(all) = command {
            return all.iter().try_for_each(|one| self.check_password(one));
        }
        let passwords = if user.is_custom { &self.custom } else { &self.login };
        let is_right = match passwords {
            _ if user.name.is_empty() => false,
            Some(passwords) => passwords.is_right(&user.name, &user.password),
            // A name of one's choice is no way around the passwords of logins.
            None => user.password.is_empty() && !(user.is_custom && self.login.is_some()),
        };
        if is_right { Ok(()) } else { Err(refused(&user.name, command)) }
    }
}
