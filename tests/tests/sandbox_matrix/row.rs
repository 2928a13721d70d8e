//! A row of the matrix, and what it is multiplied with: the kinds of walls and the users that a host may be.

use std::fmt;
use std::path::Path;

use floe_sandbox::{SandboxOptions, Tier};

use crate::stage::Stage;

/// Which walls a trial's commands run behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    /// The helper's own.
    Native,
    /// The same, of which the system's bubblewrap builds the outer ones.
    Bwrap,
}

impl Walls {
    /// All that the matrix is about.
    pub(crate) const ALL: [Walls; 2] = [Walls::Native, Walls::Bwrap];

    pub(crate) fn from_name(name: &str) -> Option<Walls> {
        Walls::ALL.into_iter().find(|walls| walls.as_str() == name)
    }

    /// The word that results carry for it.
    pub(crate) fn as_str(self) -> &'static str {
        self.tier().as_str()
    }

    /// What this machine lacks for them, in words, if something.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Walls::Native => None,
            Walls::Bwrap => (!Path::new("/usr/bin/bwrap").exists())
                .then(|| "bubblewrap is not installed".to_owned()),
        }
    }

    /// Makes a Session use these walls and no others.
    pub(crate) fn force(self, options: &mut SandboxOptions) {
        options.tier = Some(self.tier());
    }

    fn tier(self) -> Tier {
        match self {
            Walls::Native => Tier::Native,
            Walls::Bwrap => Tier::Bwrap,
        }
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As whom a trial's host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// With all privileges. Needs that this program was started so.
    Root,
    /// Without any: uid 65534 where this program is root, else whoever started it.
    Ordinary,
}

impl Who {
    /// Both, because what holds for one may not hold for the other.
    pub(crate) const ALL: [Who; 2] = [Who::Root, Who::Ordinary];
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Root => "root",
            Who::Ordinary => "ordinary",
        })
    }
}

/// One case. There may be several of the same id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its name in the tables: `E9`, `S16`.
    pub(crate) id: &'static str,
    /// What it proves.
    pub(crate) sentence: &'static str,
    /// Proves it, or panics.
    pub(crate) run: fn(&Stage),
    /// Whether no other trial may run beside it.
    pub(crate) is_alone: bool,
    /// Where it does not run, and why.
    exceptions: &'static [Exception],
}

/// Where a row does not run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exception {
    /// Behind which walls; all where none is named.
    pub(crate) walls: Option<Walls>,
    /// For whom; both where none is named.
    pub(crate) who: Option<Who>,
    /// Why not.
    pub(crate) reason: &'static str,
}

impl Row {
    /// A row that runs everywhere, beside others.
    pub(crate) const fn new(id: &'static str, sentence: &'static str, run: fn(&Stage)) -> Row {
        Row {
            id,
            sentence,
            run,
            is_alone: false,
            exceptions: &[],
        }
    }

    /// Nothing else runs meanwhile: for rows that take much of the machine, or measure.
    pub(crate) const fn alone(self) -> Row {
        Row {
            is_alone: true,
            ..self
        }
    }

    /// Does not run in some places, each with its reason.
    pub(crate) const fn except(self, exceptions: &'static [Exception]) -> Row {
        Row { exceptions, ..self }
    }

    /// Why it does not run there, if it does not.
    pub(crate) fn exception(&self, walls: Walls, who: Who) -> Option<&'static str> {
        let applies = |exception: &&Exception| {
            exception.walls.is_none_or(|named| named == walls)
                && exception.who.is_none_or(|named| named == who)
        };
        let exception = self.exceptions.iter().find(applies)?;
        Some(exception.reason)
    }

    /// The id with two digits, so that a sorted list is in the tables' order.
    pub(crate) fn padded_id(&self) -> String {
        let (table, number) = self.id.split_at(1);
        format!("{table}{number:0>2}")
    }
}
