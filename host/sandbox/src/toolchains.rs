//! Tool chains on the person's PATH that lie outside the system's folders: what a command must be able to read of them,
//! and what in them nobody else may.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Toolchains {
    /// Folders that commands may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Files in them that hold credentials.
    pub(crate) credentials: Vec<PathBuf>,
    /// Variables by which a tool chain finds itself, now that HOME is another.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A tool chain that lives in a home: where a PATH entry gives it away, what it consists of, and its variables.
struct Known {
    sign: &'static str,
    folders: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const fn known(
    sign: &'static str,
    folders: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
) -> Known {
    Known {
        sign,
        folders,
        variables,
    }
}

const KNOWN: &[Known] = &[
    known(
        ".cargo",
        &[".cargo", ".rustup"],
        &[("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")],
    ),
    known(".pyenv", &[".pyenv"], &[("PYENV_ROOT", ".pyenv")]),
    known(".rbenv", &[".rbenv"], &[("RBENV_ROOT", ".rbenv")]),
    known(".nodenv", &[".nodenv"], &[("NODENV_ROOT", ".nodenv")]),
    known(".nvm", &[".nvm"], &[("NVM_DIR", ".nvm")]),
    known(".volta", &[".volta"], &[("VOLTA_HOME", ".volta")]),
    known(".asdf", &[".asdf"], &[("ASDF_DATA_DIR", ".asdf")]),
    known(".sdkman", &[".sdkman"], &[("SDKMAN_DIR", ".sdkman")]),
    known(
        ".local/share/mise",
        &[".local/share/mise"],
        &[("MISE_DATA_DIR", ".local/share/mise")],
    ),
    known(".local/share/pnpm", &[".local/share/pnpm"], &[]),
    known(
        ".local/bin",
        &[
            ".local/bin",
            ".local/lib",
            ".local/share/uv",
            ".local/share/pipx",
        ],
        &[("PYTHONUSERBASE", ".local")],
    ),
    known(
        "go",
        &["go/bin", "go/pkg/mod"],
        &[("GOMODCACHE", "go/pkg/mod")],
    ),
    known(".dotnet", &[".dotnet"], &[("DOTNET_ROOT", ".dotnet")]),
    known(".deno", &[".deno/bin"], &[]),
    known(".bun", &[".bun/bin"], &[]),
    known(".ghcup", &[".ghcup"], &[]),
    known(".opam", &[".opam"], &[("OPAMROOT", ".opam")]),
    known(".juliaup", &[".juliaup", ".julia/juliaup"], &[]),
    known(".nix-profile", &[".nix-profile"], &[]),
    known("miniconda3", &["miniconda3"], &[]),
    known("miniforge3", &["miniforge3"], &[]),
    known("anaconda3", &["anaconda3"], &[]),
];

/// What stands beside a `bin` that lies anywhere else, and that its programs need.
const SIBLINGS: [&str; 5] = ["lib", "lib64", "libexec", "share", "include"];

/// Files by which people sign in somewhere, as tool chains name them.
const CREDENTIALS: [&str; 13] = [
    ".env",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "NuGet.Config",
    "auth.json",
    "auth.toml",
    "credentials",
    "credentials.toml",
    "gradle.properties",
    "settings-security.xml",
    "settings.xml",
];

/// Finds the tool chains on `search_path`. `variable` reads the host's environment, in which a tool chain may have been
/// moved from its usual place. A folder that holds one of `private` is no tool chain, whoever wrote it into PATH.
pub(crate) fn find(
    search_path: &OsStr,
    private: &[PathBuf],
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Toolchains {
    let mut finder = Finder {
        private: private
            .iter()
            .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()))
            .collect(),
        variable,
        found: Toolchains::default(),
    };
    for entry in std::env::split_paths(search_path).filter(|entry| entry.is_absolute()) {
        match known_at(&entry, home) {
            Some((home, known)) => finder.add_known(home, known),
            None if home.is_some_and(|home| entry.starts_with(home)) => finder.add(entry),
            None => finder.add_outside(&entry),
        }
    }
    let mut found = finder.found;
    found.credentials = credentials(&found.readable);
    found
}

/// The known tool chain that `entry` belongs to, and the home it lies in: the person's, or by a hidden folder's name
/// that of somebody else.
fn known_at<'e>(entry: &'e Path, person_home: Option<&Path>) -> Option<(&'e Path, &'static Known)> {
    entry.ancestors().skip(1).find_map(|home| {
        let inside = entry.strip_prefix(home).ok()?;
        let known = KNOWN.iter().find(|known| inside.starts_with(known.sign))?;
        (person_home == Some(home) || known.sign.starts_with('.')).then_some((home, known))
    })
}

/// The files in `folders` by which people sign in somewhere, by the paths that are masked: without a link in them.
fn credentials(folders: &[PathBuf]) -> Vec<PathBuf> {
    folders
        .iter()
        .flat_map(|folder| CREDENTIALS.iter().map(move |name| folder.join(name)))
        .filter_map(|path| path.canonicalize().ok())
        .collect()
}

struct Finder<Variable> {
    /// Folders that must not be shown as a part of something else.
    private: Vec<PathBuf>,
    variable: Variable,
    found: Toolchains,
}

impl<Variable: Fn(&str) -> Option<OsString>> Finder<Variable> {
    fn add(&mut self, folder: PathBuf) {
        let Ok(real) = folder.canonicalize() else {
            return;
        };
        let reveals = self
            .private
            .iter()
            .any(|private| private.starts_with(&real));
        if real.is_dir() && !reveals && !self.found.readable.contains(&folder) {
            self.found.readable.push(folder);
        }
    }

    fn add_known(&mut self, home: &Path, known: &Known) {
        for folder in known.folders {
            self.add(home.join(folder));
        }
        for (name, usual) in known.variables {
            let place = (self.variable)(name).map_or_else(|| home.join(usual), PathBuf::from);
            let told = self.found.environment.iter().any(|(told, _)| told == name);
            if place.is_dir() && !told {
                // Where it is as usual, the folders above are what of it commands may see.
                let moved = !known
                    .folders
                    .iter()
                    .any(|folder| home.join(folder).starts_with(&place));
                if moved {
                    self.add(place.clone());
                }
                self.found.environment.push((name.into(), place.into()));
            }
        }
    }

    fn add_outside(&mut self, entry: &Path) {
        self.add(entry.to_owned());
        let holds_programs = entry.ends_with("bin") || entry.ends_with("sbin");
        let prefix = entry.parent().filter(|prefix| prefix.parent().is_some());
        if let Some(prefix) = prefix.filter(|_| holds_programs) {
            for sibling in SIBLINGS {
                self.add(prefix.join(sibling));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_known_tool_chain_is_read_as_a_whole_without_its_credentials() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for folder in [".cargo/bin", ".rustup/toolchains", ".ssh", "secret/bin"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::write(home.join(".cargo/credentials.toml"), "token").unwrap();
        let path = home.join(".cargo/bin").into_os_string();
        let found = find(&path, &[], Some(home), |_| None);
        assert_eq!(found.readable, [home.join(".cargo"), home.join(".rustup")]);
        assert_eq!(found.credentials, [home.join(".cargo/credentials.toml")]);
        let names: Vec<_> = found
            .environment
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(names, ["CARGO_HOME", "RUSTUP_HOME"]);
    }

    #[test]
    fn an_unknown_folder_of_the_home_is_read_alone() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("mine/bin")).unwrap();
        fs::create_dir_all(home.path().join("mine/lib")).unwrap();
        let entry = home.path().join("mine/bin");
        let found = find(entry.as_os_str(), &[], Some(home.path()), |_| None);
        assert_eq!(found.readable, [entry]);
    }

    #[test]
    fn a_prefix_outside_the_home_is_read_with_what_stands_beside_its_programs() {
        let prefix = tempfile::tempdir().unwrap();
        for folder in ["bin", "lib", "data"] {
            fs::create_dir(prefix.path().join(folder)).unwrap();
        }
        let entry = prefix.path().join("bin");
        let found = find(entry.as_os_str(), &[], Some(Path::new("/nowhere")), |_| {
            None
        });
        assert_eq!(found.readable, [entry, prefix.path().join("lib")]);
    }

    #[test]
    fn a_folder_on_path_that_holds_the_home_or_another_private_folder_is_not_shown() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let private = [home.clone(), root.path().join("session/tmp")];
        for folder in ["home/.ssh", "session/tmp", "session/tools"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(&home, root.path().join("link")).unwrap();
        let wide = ["", "home", "session", "link"].map(|name| root.path().join(name));
        let tools = root.path().join("session/tools");
        let path = std::env::join_paths(wide.iter().chain([&tools])).unwrap();
        let found = find(&path, &private, Some(&home), |_| None);
        assert_eq!(found.readable, [tools]);
    }

    #[test]
    fn of_a_home_with_programs_in_it_no_more_is_shown_than_they_need() {
        let other = tempfile::tempdir().unwrap();
        for folder in [".local/bin", ".local/share/keyrings", ".local/share/uv"] {
            fs::create_dir_all(other.path().join(folder)).unwrap();
        }
        let entry = other.path().join(".local/bin");
        for home in [Path::new("/root"), other.path()] {
            let found = find(entry.as_os_str(), &[], Some(home), |_| None);
            let shown = [entry.clone(), other.path().join(".local/share/uv")];
            assert_eq!(found.readable, shown);
        }
    }

    #[test]
    fn credentials_are_found_where_links_lead_to() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap().join("data");
        fs::create_dir_all(real.join("bin")).unwrap();
        fs::write(real.join("token"), "secret").unwrap();
        std::os::unix::fs::symlink("token", real.join("credentials.toml")).unwrap();
        std::os::unix::fs::symlink(&real, root.path().join(".cargo")).unwrap();
        let entry = root.path().join(".cargo/bin");
        let found = find(entry.as_os_str(), &[], Some(root.path()), |_| None);
        assert_eq!(found.credentials, [real.join("token")]);
    }
}
