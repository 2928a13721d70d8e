//! What of a request can be asked for at all, and what of it a command has anyway. Nothing here grants anything.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;

use super::{GrantedPath, Widening, WideningFault, apply, placement};
use crate::error::errno_text;
use crate::layer::Tier;
use crate::options::SandboxOptions;
use crate::plan::Access;
use crate::policy::WorkspaceMode;
use crate::protected::PROTECTED;
use crate::survey::Survey;
use crate::view::{self, View};

/// Paths of one request.
const MOST_PATHS: usize = 16;
/// Bytes of one path; the kernel takes no more.
const LONGEST_PATH: usize = 4095;

/// Where the machine's own services listen; whoever may reach those is not confined any more.
const SERVICES: [&str; 2] = ["/run", "/var/run"];

/// In a git directory: what git executes or obeys.
const GIT: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// What a request is judged by.
pub(crate) struct Grounds<'a> {
    pub(crate) options: &'a SandboxOptions,
    pub(crate) tier: Tier,
    pub(crate) view: &'a View,
    pub(crate) survey: &'a Survey,
    /// Relative to the Workspace.
    pub(crate) protected: &'a BTreeSet<PathBuf>,
}

/// What is beyond the reach that every command of this Session has: what a person is to be asked about.
pub(crate) fn judge(
    grounds: &Grounds<'_>,
    read: &[String],
    write: &[String],
) -> Result<Widening, WideningFault> {
    let mut widening = Widening::default();
    for (access, asked, into) in [
        (Access::Read, read, &mut widening.read),
        (Access::Write, write, &mut widening.write),
    ] {
        if asked.len() > MOST_PATHS {
            return Err(WideningFault::Mistake {
                place: list(access).to_owned(),
                reason: format!("at most {MOST_PATHS} paths; name the folder that holds them"),
            });
        }
        for (index, path) in asked.iter().enumerate() {
            let request = Request {
                grounds,
                access,
                asked: path,
                place: format!("{}/{index}", list(access)),
            };
            into.extend(request.judge()?.filter(|path| !into.contains(path)));
        }
    }
    Ok(widening)
}

fn list(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
    }
}

/// One path of a request.
struct Request<'a> {
    grounds: &'a Grounds<'a>,
    access: Access,
    /// As the model wrote it.
    asked: &'a str,
    place: String,
}

impl Request<'_> {
    /// The path to ask about; none where commands have it anyway.
    fn judge(&self) -> Result<Option<GrantedPath>, WideningFault> {
        let path = self.parse()?;
        if self.grounds.tier == Tier::Unconfined {
            return Ok(None);
        }
        self.refuse_private(&path)?;
        self.refuse_reserved(&path)?;
        let real = path.canonicalize().map_err(|error| {
            let nothing = error.kind() == std::io::ErrorKind::NotFound;
            self.mistake(match (nothing, self.access) {
                (true, Access::Read) => "nothing is there".to_owned(),
                (true, Access::Write) => {
                    "nothing is there; to make it, ask for the folder that it goes into".to_owned()
                }
                (false, _) => format!(
                    "it cannot be looked at: {}",
                    errno_text(error.raw_os_error().unwrap_or(libc::EIO))
                ),
            })
        })?;
        self.refuse_private(&real)?;
        self.refuse_reserved(&real)?;
        self.refuse_too_much(&real)?;
        if let Ok(inside) = real.strip_prefix(&self.grounds.options.workspace_path) {
            return self.in_workspace(inside).map(|()| None);
        }
        if self.access == Access::Write && is_obeyed_later(&real) {
            return Err(self.protected());
        }
        self.refuse_unreadable(&real)?;
        let (granted, kind) = GrantedPath::see(&real).map_err(|error| {
            self.mistake(format!(
                "it cannot be looked at: {}",
                errno_text(error.raw_os_error().unwrap_or(libc::EIO))
            ))
        })?;
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            return Err(self.mistake("it is neither a file nor a folder"));
        }
        if placement::has(&self.grounds.view.entries, &real, self.access) {
            return Ok(None);
        }
        if self.grounds.tier == Tier::Landlock {
            return Err(self.landlock_alone());
        }
        // Found now, so that nobody is asked about what could not be given.
        apply::inner_walls(&self.grounds.options.policy, &granted, self.access)?;
        Ok(Some(granted))
    }

    /// The path as it can be meant, in the host's own names.
    fn parse(&self) -> Result<PathBuf, WideningFault> {
        let path = Path::new(self.asked);
        let odd = if self.asked.len() > LONGEST_PATH {
            Some("the path is too long")
        } else if self.asked.chars().any(char::is_control) {
            Some("the path holds a control character")
        } else if self.asked.starts_with('~') {
            Some("`~` is not expanded; write the absolute path")
        } else if !path.is_absolute() {
            Some("the path must be absolute; what lies in the Workspace needs no widening")
        } else if path.components().any(|part| part == Component::ParentDir) {
            Some("the path must not hold `..`")
        } else {
            None
        };
        if let Some(reason) = odd {
            return Err(self.mistake(reason));
        }
        let workspace = &self.grounds.options.workspace_path;
        Ok(match path.strip_prefix(crate::Sandbox::WORKSPACE) {
            Ok(inside) => workspace.join(inside),
            Err(_) => path.components().collect(),
        })
    }

    fn refuse_private(&self, path: &Path) -> Result<(), WideningFault> {
        let mut private = self.grounds.options.private.iter();
        if private.any(|private| path.starts_with(private) || private.starts_with(path)) {
            return Err(WideningFault::Forbidden(format!(
                "The call asks to {} {:?}, where Floe keeps its own files, and no widening reaches those. Ask the person \
                 to copy what you need into the Workspace.",
                self.verb(),
                self.asked
            )));
        }
        Ok(())
    }

    fn refuse_reserved(&self, path: &Path) -> Result<(), WideningFault> {
        let mut own = view::RESERVED.iter().chain(&SERVICES).map(Path::new);
        if let Some(own) = own.find(|own| path.starts_with(own)) {
            return Err(self.mistake(format!(
                "{} belongs to the sandbox itself and cannot be widened",
                own.display()
            )));
        }
        if path == Path::new(view::TMP) || path.parent().is_none() {
            return Err(
                self.mistake("it holds what the sandbox makes itself; name what you need in it")
            );
        }
        Ok(())
    }

    /// One word of the person must not open all that the sandbox is there to hide.
    fn refuse_too_much(&self, path: &Path) -> Result<(), WideningFault> {
        let options = self.grounds.options;
        let home = options.person_home.iter();
        let home = home.filter_map(|home| home.canonicalize().ok());
        if home.into_iter().any(|home| home.starts_with(path)) {
            return Err(self.mistake("it holds the person's whole home; name what you need in it"));
        }
        let holds = options.workspace_path.starts_with(path) && options.workspace_path != path;
        if holds {
            return Err(self.mistake("it holds the Workspace; name what you need beside that"));
        }
        Ok(())
    }

    /// In the Workspace a command has everything but what the policy takes away, and that no widening gives back.
    fn in_workspace(&self, path: &Path) -> Result<(), WideningFault> {
        let Grounds {
            options,
            survey,
            protected,
            ..
        } = self.grounds;
        let is_in = |set: &BTreeSet<PathBuf>| set.iter().any(|above| path.starts_with(above));
        match self.access {
            Access::Read if is_in(&survey.denied) => Err(self.unreadable()),
            Access::Write if options.policy.workspace == WorkspaceMode::ReadOnly => {
                Err(WideningFault::Forbidden(format!(
                    "The call asks to write {:?}; commands may only read the Workspace (shell.mode: read-only), and no \
                     widening changes that. The person can, in FLOE_HOME/config.yaml.",
                    self.asked
                )))
            }
            Access::Write if is_in(protected) => Err(self.protected()),
            Access::Read | Access::Write => Ok(()),
        }
    }

    /// What `deny_read` names is hidden outside the Workspace as well.
    fn refuse_unreadable(&self, path: &Path) -> Result<(), WideningFault> {
        let denies_reading = self.grounds.options.policy.denies_reading()?;
        let names = path.components().skip(1).collect::<PathBuf>();
        if names.ancestors().any(denies_reading) {
            return Err(self.unreadable());
        }
        Ok(())
    }

    fn landlock_alone(&self) -> WideningFault {
        let verb = self.verb();
        WideningFault::Forbidden(format!(
            "The call asks to {verb} {:?}; on this machine commands are confined by Landlock alone, which is not widened for \
             single calls. The person can add the path to shell.extra_{verb} in FLOE_HOME/config.yaml, or start Floe with \
             --allow-{verb}.",
            self.asked
        ))
    }

    fn verb(&self) -> &'static str {
        list(self.access)
    }

    fn mistake(&self, reason: impl Into<String>) -> WideningFault {
        WideningFault::Mistake {
            place: self.place.clone(),
            reason: format!("{:?}: {}", self.asked, reason.into()),
        }
    }

    fn protected(&self) -> WideningFault {
        WideningFault::Forbidden(format!(
            "The call asks to write {:?}, which is protected: what is there is executed or obeyed outside the sandbox, and no \
             widening reaches it. Tell the person what you want changed there.",
            self.asked
        ))
    }

    fn unreadable(&self) -> WideningFault {
        WideningFault::Forbidden(format!(
            "The call asks to read {:?}, which the person's shell.deny_read hides, and no widening gives it back. Ask the \
             person for what you need of it.",
            self.asked
        ))
    }
}

/// Whether a path outside the Workspace lies at or in what programs outside the sandbox execute or obey.
fn is_obeyed_later(path: &Path) -> bool {
    let mut in_git = false;
    path.iter().any(|name| {
        let name = name.to_string_lossy();
        let obeyed = PROTECTED.contains(&&*name) || (in_git && GIT.contains(&&*name));
        in_git |= name.ends_with(".git");
        obeyed
    })
}
