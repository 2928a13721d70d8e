//! The view of a command in bubblewrap's words.
//!
//! Nothing is left to bubblewrap's defaults: with them a host that is root would keep its capabilities, could write to
//! `/proc/sys`, and would go on without a user namespace where it may not make one. The Workspace and all that is shown of the
//! machine are named by descriptor, so that a path which comes to lead elsewhere ends the start instead of the confinement. What is protected in it is not told
//! at all: bubblewrap makes what a mount needs where it is missing, by a path on which a running command may put a link
//! that leads out at any time. This translates and nothing else: what is where on the machine it asks.

use std::path::{Path, PathBuf};

use crate::helper::proc::{HIDDEN, READ_ONLY};
use crate::plan::wrapped::{Told, Word};
use crate::plan::{Access, Bytes, Confined, Entry};

/// What is at a path, without following any link to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Link,
    File,
}

/// What the translation asks about the machine.
pub(super) trait Ask {
    /// What is at this path of the host; nothing where a link is on the way.
    fn on_host(&self, path: &Path) -> Option<Kind>;
    /// What is at this path of the Workspace, relative to it; nothing where a link is on the way.
    fn in_workspace(&self, path: &Path) -> Option<Kind>;
}

/// What bubblewrap is told, and where the Workspace lies by that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Translation {
    pub(super) options: Vec<Told>,
    /// Where the Workspace lies in the view, its own place first.
    pub(super) workspaces: Vec<Bytes>,
}

/// The options with which the Session's namespaces are made, the network's among them or not, around a view that is the
/// host's own.
pub(super) fn anchor(network: bool) -> Vec<Told> {
    let network = network.then(|| told(["--unshare-net"]));
    let mut options = vec![told(["--unshare-user"])];
    options.extend(network);
    options.extend([
        told(["--cap-drop", "ALL"]),
        told(["--die-with-parent"]),
        told(["--dev-bind", "/", "/"]),
        told(["--chdir", "/"]),
    ]);
    options
}

/// The options that make the namespaces and the view of a command.
pub(super) fn translate(plan: &Confined, ask: &dyn Ask) -> Translation {
    let mut translator = Translator {
        plan,
        ask,
        options: vec![
            told(["--unshare-user"]),
            told(["--unshare-pid"]),
            told(["--unshare-ipc"]),
            told(["--unshare-uts"]),
            told(["--unshare-cgroup-try"]),
            told(["--hostname", "floe"]),
            told(["--cap-drop", "ALL"]),
            told(["--die-with-parent"]),
            // The helper is the first process of the namespace, as without bubblewrap. There is no `--new-session`: the
            // helper makes the command's session itself, with its terminal.
            told(["--as-pid-1"]),
        ],
        workspaces: Vec::new(),
    };
    for (number, entry) in plan.view.iter().enumerate() {
        translator.put(entry, &plan.view[..number]);
    }
    if plan.execution.long_script().is_some() {
        translator.options.push(Told(vec![
            text("--perms"),
            text("0444"),
            text("--file"),
            Word::Script,
            Word::Text(plan.execution.script_file.clone()),
        ]));
    }
    translator.options.push(told(["--remount-ro", "/"]));
    translator.options.push(told(["--chdir", "/"]));
    Translation {
        options: translator.options,
        workspaces: translator.workspaces,
    }
}

struct Translator<'a> {
    plan: &'a Confined,
    ask: &'a dyn Ask,
    options: Vec<Told>,
    workspaces: Vec<Bytes>,
}

impl Translator<'_> {
    fn put(&mut self, entry: &Entry, before: &[Entry]) {
        match entry {
            Entry::Folder { target } => self.tell(["--perms", "0755", "--dir"], target),
            Entry::Link { target, to } => self.tell_two("--symlink", to, target),
            Entry::Bind {
                source,
                target,
                access,
            } => self.options.push(Told(vec![
                text(bind(*access)),
                Word::Shown(source.clone()),
                Word::Text(target.clone()),
            ])),
            Entry::Mask { target } => {
                let hidden = origin(before, target.as_path());
                if let Some(kind) = hidden.and_then(|path| self.ask.on_host(&path)) {
                    self.cover(kind, target);
                }
            }
            Entry::Memory { target, size } => self.memory("0755", *size, target),
            Entry::Devices { shared_memory } => {
                self.options.push(told(["--dev", "/dev"]));
                self.memory("1777", *shared_memory, &"/dev/shm".into());
                self.options.push(told(["--remount-ro", "/dev"]));
            }
            Entry::Proc => self.proc(),
            Entry::Workspace { access } => {
                let target = self.plan.workspace.clone();
                self.workspace(*access, target);
            }
            Entry::WorkspaceAlias { target } => {
                let access = before.iter().find_map(|entry| match entry {
                    Entry::Workspace { access } => Some(*access),
                    _ => None,
                });
                // What has no place yet has no other name either.
                if let Some(access) = access {
                    self.workspace(access, target.clone());
                }
            }
        }
    }

    /// A `/proc` of the command's own. bubblewrap itself makes the machine's settings in it read-only only where the host
    /// may open the folder for writing, which says nothing about the files.
    fn proc(&mut self) {
        self.options.push(told(["--proc", "/proc"]));
        let there = |name: &str| {
            let path = Path::new("/proc").join(name);
            self.ask
                .on_host(&path)
                .map(|kind| (Bytes::from(path), kind))
        };
        let read_only: Vec<_> = READ_ONLY.iter().filter_map(|name| there(name)).collect();
        let hidden: Vec<_> = HIDDEN.iter().filter_map(|name| there(name)).collect();
        for (path, _) in read_only {
            self.tell_two("--ro-bind", &path, &path);
        }
        for (path, kind) in hidden {
            self.cover(kind, &path);
        }
    }

    /// The Workspace at one place of the view, with what is hidden in it: that was there at the Session's start, and has
    /// been held since, so that no command can have put anything else in its way.
    fn workspace(&mut self, access: Access, place: Bytes) {
        let (plan, ask) = (self.plan, self.ask);
        let target = Word::Text(place.clone());
        self.options
            .push(Told(vec![text(bind(access)), Word::Workspace, target]));
        for path in plan.denied.iter().map(Bytes::as_path) {
            if let Some(kind) = ask.in_workspace(path) {
                self.cover(kind, &place.as_path().join(path).into());
            }
        }
        self.workspaces.push(place);
    }

    /// Covers what is at `target` with an empty folder that nobody can write to, or an empty file that nobody can read.
    fn cover(&mut self, kind: Kind, target: &Bytes) {
        match kind {
            Kind::Folder => {
                self.memory("0555", SMALLEST, target);
                self.tell(["--remount-ro"], target);
            }
            Kind::File => self.options.push(Told(vec![
                text("--perms"),
                text("0000"),
                text("--ro-bind-data"),
                Word::Nothing,
                Word::Text(target.clone()),
            ])),
            // What it leads to has a path of its own.
            Kind::Link => {}
        }
    }

    fn memory(&mut self, mode: &str, size: u64, target: &Bytes) {
        let size = size.max(SMALLEST).to_string();
        self.tell(["--perms", mode, "--size", &size, "--tmpfs"], target);
    }

    fn tell<const N: usize>(&mut self, words: [&str; N], target: &Bytes) {
        let mut words: Vec<Word> = words.map(text).into();
        words.push(Word::Text(target.clone()));
        self.options.push(Told(words));
    }

    fn tell_two(&mut self, option: &str, first: &Bytes, second: &Bytes) {
        let words = [first, second].map(|value| Word::Text(value.clone()));
        self.options
            .push(Told(std::iter::once(text(option)).chain(words).collect()));
    }
}

/// The least that a file system in memory may hold; none at all would mean without bounds.
const SMALLEST: u64 = 4096;

fn bind(access: Access) -> &'static str {
    match access {
        Access::Read => "--ro-bind-fd",
        Access::Write => "--bind-fd",
    }
}

/// The path on the host of what the entries put at `target`; nothing where they put nothing of the host's there.
fn origin(entries: &[Entry], target: &Path) -> Option<PathBuf> {
    let covers = |place: &Bytes| target.starts_with(place.as_path());
    entries.iter().rev().find_map(|entry| match entry {
        Entry::Bind {
            source,
            target: place,
            ..
        } if covers(place) => {
            let below = target.strip_prefix(place.as_path()).ok()?;
            Some(Some(if below.as_os_str().is_empty() {
                source.as_path().to_owned()
            } else {
                source.as_path().join(below)
            }))
        }
        Entry::Folder { target: place }
        | Entry::Link { target: place, .. }
        | Entry::Mask { target: place }
        | Entry::Memory { target: place, .. }
            if covers(place) =>
        {
            Some(None)
        }
        _ => None,
    })?
}

fn text(word: &str) -> Word {
    Word::Text(word.into())
}

fn told<const N: usize>(words: [&str; N]) -> Told {
    Told(words.map(text).into())
}

#[cfg(test)]
mod tests;
