//! Protected names that could not be protected because they did not exist: noticed once they do.
//!
//! A command may make them, because nothing is ever put in the Workspace to hold their place. Git, editors and agents
//! outside the sandbox would obey them, so the person is to be told.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What has come to be protected since the Session's first command.
#[derive(Debug, Default)]
pub(crate) struct Newcomers {
    known: Option<BTreeSet<PathBuf>>,
    untold: Vec<PathBuf>,
}

impl Newcomers {
    /// Takes notice of what is protected now. What is there the first time is nothing new.
    pub(crate) fn notice<'p>(&mut self, protected: impl Iterator<Item = &'p PathBuf>) {
        let Some(known) = &mut self.known else {
            self.known = Some(protected.cloned().collect());
            return;
        };
        for path in protected {
            if known.insert(path.clone()) {
                self.untold.push(path.clone());
            }
        }
    }

    /// What is new; each is told once.
    pub(crate) fn take(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_at_first_is_not_new_and_what_is_new_is_told_once() {
        let mut newcomers = Newcomers::default();
        let (old, new) = (PathBuf::from("old"), PathBuf::from("new"));
        newcomers.notice([&old].into_iter());
        assert!(newcomers.take().is_empty());
        newcomers.notice([&old, &new].into_iter());
        assert_eq!(newcomers.take(), std::slice::from_ref(&new));
        newcomers.notice([&old].into_iter());
        newcomers.notice([&new].into_iter());
        assert!(newcomers.take().is_empty());
    }
}
