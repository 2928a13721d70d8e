//! What a git configuration file of the Workspace says that makes git execute or obey something: the folder of the hooks,
//! further configuration files, and every setting that names a program.
//!
//! Read here and never asked of `git`, which would obey the file while it answers.

use std::collections::BTreeSet;
use std::path::PathBuf;

mod risky;
mod syntax;

/// What a configuration file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// `core.hooksPath`, relative to the work tree unless absolute.
    pub(crate) hooks: Vec<PathBuf>,
    /// `include.path` and `includeIf.*.path`, relative to the file unless absolute.
    pub(crate) included: Vec<PathBuf>,
    /// The settings by which git starts programs or obeys further files, each with its value.
    pub(crate) executed: BTreeSet<(String, String)>,
}

/// Reads a configuration file. What git itself would refuse to read is read as far as it can be understood.
pub(crate) fn read(text: &str) -> Named {
    let mut named = Named::default();
    for setting in syntax::settings(text) {
        let list = match (setting.section.as_str(), setting.key.as_str()) {
            ("core", "hookspath") => Some(&mut named.hooks),
            ("include" | "includeif", "path") => Some(&mut named.included),
            _ => None,
        };
        if let Some(list) = list {
            list.push(setting.value.as_str().into());
        }
        if risky::is_executed(&setting) {
            named.executed.insert((setting.name(), setting.value));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_further_files_are_named_by_their_sections_alone() {
        let text = "[core]\n\thooksPath = .husky ; ours\n[Include]\npath = \"../a b\"\n\
                    [includeIf \"gitdir:x]\"]\npath=c\n[other]\npath = no\nhooksPath = no\n[core] HOOKSPATH=d#e\n\
                    [core]\nhooksPath = ev\\\nil\n";
        let named = read(text);
        assert_eq!(
            named.hooks,
            [PathBuf::from(".husky"), "d".into(), "evil".into()]
        );
        assert_eq!(named.included, [PathBuf::from("../a b"), "c".into()]);
    }

    #[test]
    fn settings_that_start_programs_are_named_and_others_are_not() {
        let text = "[core]\nbare = false\nfsmonitor = evil\nsshCommand=x\n[alias]\nst = !evil\n\
                    [filter \"a.b\"]\nclean = evil\nrequired = true\n[diff \"x\"]\ntextconv=evil\n\
                    [credential \"https://a\"]\nhelper = evil\n[user]\nname = me\n[remote \"o\"]\nurl = ext::evil\n\
                    [remote \"p\"]\nurl = https://a/b\n[pager]\nlog = evil\n[filter.c]\nsmudge = x\n";
        let named = read(text);
        let names: Vec<_> = named.executed.into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "alias.st",
                "core.fsmonitor",
                "core.sshcommand",
                "credential.\"https://a\".helper",
                "diff.\"x\".textconv",
                "filter.\"a.b\".clean",
                "filter.\"c\".smudge",
                "pager.log",
                "remote.\"o\".url",
            ]
        );
    }
}
