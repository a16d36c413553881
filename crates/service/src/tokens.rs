//! Bearer tokens for a service's HTTP endpoints (RFC 6750), from a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, bail};

use crate::read_secret;

/// The most tokens of a file.
const MAX_TOKENS: usize = 1024;

/// The least and the most bytes of a token.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

/// The tokens of a file, a line each. Copies share them: what one reads again, all have.
#[derive(Clone)]
pub struct Tokens {
    path: Arc<Path>,
    tokens: Arc<RwLock<Vec<Box<[u8]>>>>,
}

impl Tokens {
    /// Reads the file. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// When it can't be read, or holds no tokens, or a line that can't be one.
    pub fn read(path: PathBuf) -> anyhow::Result<Self> {
        // It is read again, maybe from another working directory.
        let path = std::path::absolute(path)?;
        let tokens = read(&path)?;
        Ok(Self { path: path.into(), tokens: Arc::new(RwLock::new(tokens)) })
    }

    /// Reads the file again; on an error the tokens stay as they were.
    ///
    /// # Errors
    /// As [`Tokens::read`].
    pub fn read_again(&self) -> anyhow::Result<()> {
        let tokens = read(&self.path)?;
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(())
    }

    /// Whether `token` is one of them. Takes as long for one that is nearly right as for any other
    /// of its length.
    pub fn has(&self, token: &[u8]) -> bool {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let is_equal = |right: &[u8]| {
            let differs = right.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
            right.len() == token.len() && differs == 0
        };
        tokens.iter().fold(false, |found, right| found | is_equal(right))
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Box<[u8]>>> {
    let text = read_secret(path).and_then(|bytes| base::into_text(path, bytes));
    let text = text.context("--token-file can't be read")?;
    let shown = path.display();
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fits = TOKEN_BYTES.contains(&line.len()) && line.bytes().all(|b| b.is_ascii_graphic());
        if !fits {
            let (least, most) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
            bail!("{shown}:{number}: a token has {least} to {most} ASCII characters, no spaces");
        }
        tokens.push(line.as_bytes().into());
    }
    match tokens.len() {
        0 => bail!("{shown} holds no token: write one to a line"),
        count if count > MAX_TOKENS => bail!("{shown} holds {count} tokens, over {MAX_TOKENS}"),
        _ => Ok(tokens),
    }
}

/// The first token of a file of tokens, for a client to send.
///
/// # Errors
/// When the file can't be read, or its first line can't be a token.
pub fn first_token(path: &Path) -> anyhow::Result<String> {
    let text = base::into_text(path, read_secret(path)?)?;
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let token = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (number, token) = token.with_context(|| format!("{} holds no token", path.display()))?;
    anyhow::ensure!(
        token.bytes().all(|byte| byte.is_ascii_graphic()),
        "{}:{number}: a token has ASCII characters only, and no spaces",
        path.display()
    );
    Ok(token.to_owned())
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn tokens_are_lines_and_a_useless_file_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "# of the scraper\n0123456789abcdef\n\n").expect("written");
        let tokens = Tokens::read(path.clone()).expect("read");
        assert!(tokens.has(b"0123456789abcdef"));
        assert!(!tokens.has(b"0123456789abcdeF") && !tokens.has(b"") && !tokens.has(b"# of"));
        for (text, said) in [("", "no token"), ("# x\nshort\n", "tokens:2: a token has 16")] {
            std::fs::write(&path, text).expect("written");
            let error = tokens.read_again().expect_err("refused").to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(tokens.has(b"0123456789abcdef"));
        std::fs::write(&path, "fedcba9876543210").expect("written");
        tokens.read_again().expect("read");
        assert!(tokens.has(b"fedcba9876543210") && !tokens.has(b"0123456789abcdef"));
    }
}
