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
    pub(crate) fn notice(&mut self, protected: &BTreeSet<PathBuf>) {
        let known = self.known.get_or_insert_with(|| protected.clone());
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
        newcomers.notice(&[old.clone()].into());
        assert!(newcomers.take().is_empty());
        newcomers.notice(&[old.clone(), new.clone()].into());
        assert_eq!(newcomers.take(), std::slice::from_ref(&new));
        newcomers.notice(&[old].into());
        newcomers.notice(&[new].into());
        assert!(newcomers.take().is_empty());
    }
}
