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
/// moved from its usual place.
pub(crate) fn find(
    search_path: &OsStr,
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Toolchains {
    let mut found = Toolchains::default();
    for entry in std::env::split_paths(search_path).filter(|entry| entry.is_absolute()) {
        let in_home = home.and_then(|home| Some((home, entry.strip_prefix(home).ok()?)));
        match in_home {
            None => found.add_outside(&entry),
            Some((home, inside)) => {
                match KNOWN.iter().find(|known| inside.starts_with(known.sign)) {
                    Some(known) => found.add_known(home, known, &variable),
                    None => found.add(entry),
                }
            }
        }
    }
    found.credentials = found
        .readable
        .iter()
        .flat_map(|folder| CREDENTIALS.iter().map(move |name| folder.join(name)))
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    found
}

impl Toolchains {
    fn add(&mut self, folder: PathBuf) {
        if folder.is_dir() && !self.readable.contains(&folder) {
            self.readable.push(folder);
        }
    }

    fn add_known(
        &mut self,
        home: &Path,
        known: &Known,
        variable: &impl Fn(&str) -> Option<OsString>,
    ) {
        for folder in known.folders {
            self.add(home.join(folder));
        }
        for (name, usual) in known.variables {
            let place = variable(name).map_or_else(|| home.join(usual), PathBuf::from);
            let told = self.environment.iter().any(|(told, _)| told == name);
            if place.is_dir() && !told {
                self.add(place.clone());
                self.environment.push((name.into(), place.into()));
            }
        }
    }

    fn add_outside(&mut self, entry: &Path) {
        self.add(entry.to_owned());
        let holds_programs = entry.ends_with("bin") || entry.ends_with("sbin");
        let prefix = entry.parent().filter(|prefix| prefix.parent().is_some());
        if let Some(prefix) = prefix.filter(|_| holds_programs) {
            SIBLINGS
                .iter()
                .for_each(|sibling| self.add(prefix.join(sibling)));
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
        let found = find(&path, Some(home), |_| None);
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
        let found = find(entry.as_os_str(), Some(home.path()), |_| None);
        assert_eq!(found.readable, [entry]);
    }

    #[test]
    fn a_prefix_outside_the_home_is_read_with_what_stands_beside_its_programs() {
        let prefix = tempfile::tempdir().unwrap();
        for folder in ["bin", "lib", "data"] {
            fs::create_dir(prefix.path().join(folder)).unwrap();
        }
        let entry = prefix.path().join("bin");
        let found = find(entry.as_os_str(), Some(Path::new("/nowhere")), |_| None);
        assert_eq!(found.readable, [entry, prefix.path().join("lib")]);
    }
}
