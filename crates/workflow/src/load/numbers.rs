//! The numbers by which a client follows: those of the last changes that it has.

use crate::protocol::SyncAnswer;

/// The numbers of the last change of state and of structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) state: i64,
    pub(crate) modify: i64,
}

impl Numbers {
    /// Those of a text that a client takes whole: on its line `defs_state`.
    pub(crate) fn of(text: &str) -> Self {
        let line = text.lines().take(2).find(|line| line.starts_with("defs_state "));
        let number = |name: &str| {
            let words = line.unwrap_or_default().split(' ');
            words.into_iter().find_map(|word| word.strip_prefix(name)?.parse().ok()).unwrap_or(0)
        };
        Self { state: number("state_change:"), modify: number("modify_change:") }
    }

    /// Those of an answer to a sync.
    ///
    /// # Errors
    /// It is a refusal, with these words.
    pub(in crate::load) fn of_sync(answer: &SyncAnswer<'_>) -> Result<Self, String> {
        match answer {
            SyncAnswer::Whole(text) => Ok(Self::of(text)),
            SyncAnswer::Since { state_change_no, modify_change_no, .. } => {
                Ok(Self { state: (*state_change_no).into(), modify: (*modify_change_no).into() })
            }
            SyncAnswer::Refused(why) => Err(why.to_string()),
        }
    }

    /// As a tree has them; none where they are no such numbers.
    pub(in crate::load) fn pair(self) -> Option<(u32, u32)> {
        Some((self.state.try_into().ok()?, self.modify.try_into().ok()?))
    }

    /// Whether these come after others, in one number at least, and before in none.
    pub(crate) fn follow(self, others: Self) -> bool {
        self != others && self.state >= others.state && self.modify >= others.modify
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_go_on() {
        let text = "#5.9.2\ndefs_state NET state>:queued state_change:52 modify_change:8 cal:1\n";
        let numbers = Numbers::of(text);
        assert_eq!(numbers, Numbers { state: 52, modify: 8 });
        assert_eq!(Numbers::of("#5.9.2\ndefs_state NET\n"), Numbers::default());
        assert!(numbers.follow(Numbers { state: 51, modify: 8 }));
        assert!(!numbers.follow(numbers));
        assert!(!numbers.follow(Numbers { state: 3, modify: 9 }));
    }
}
