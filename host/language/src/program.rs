//! Where a server's program lies on this machine, and what of its surroundings it must be able to read.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// As it is started: links are not followed, because some programs look at the name they were called by.
    pub(crate) path: PathBuf,
    /// Folders that it must be able to read, beside the system's and the tool chains on PATH.
    pub(crate) readable: Vec<PathBuf>,
    /// The program itself, where its folder is not to be shown.
    pub(crate) files: Vec<PathBuf>,
}

/// Finds `name` on `search_path`. A program that lies in the Workspace is never one: whoever writes there would choose what is run.
pub(crate) fn find(
    name: &str,
    search_path: &OsStr,
    workspace: &Path,
    person_home: Option<&Path>,
) -> Option<Program> {
    let at = |path: &Path| at(path, workspace, person_home);
    if name.contains('/') {
        let path = Path::new(name);
        return path.is_absolute().then(|| at(path)).flatten();
    }
    if name.is_empty() {
        return None;
    }
    std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| at(&folder.join(name)))
}

/// The program at `path`, if there is one that may be taken.
fn at(path: &Path, workspace: &Path, person_home: Option<&Path>) -> Option<Program> {
    let real = path.canonicalize().ok()?;
    let metadata = real.metadata().ok()?;
    let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    if !is_program || real.starts_with(workspace) || path.starts_with(workspace) {
        return None;
    }
    let (mut readable, mut files) = (Vec::new(), Vec::new());
    for program in [path, &real] {
        let around = surroundings(program, person_home);
        // A file that is shown by itself stands where a link may be, from which some programs find what belongs to them.
        if around.is_empty() {
            files.push(program.to_owned());
        }
        readable.extend(around.into_iter().filter(|folder| folder.is_dir()));
    }
    Some(Program {
        path: path.to_owned(),
        readable,
        files,
    })
}

/// What a program at this path needs: its package where it is one of Node's, else its folder and, where that is called `bin`, what
/// usually stands beside it. Of the person's home no more than the folder, and never the home itself.
fn surroundings(program: &Path, person_home: Option<&Path>) -> Vec<PathBuf> {
    let holds_home = |folder: &Path| person_home.is_some_and(|home| home.starts_with(folder));
    let in_home = |folder: &Path| person_home.is_some_and(|home| folder.starts_with(home));
    let modules = program
        .ancestors()
        .filter(|above| above.file_name().is_some_and(|name| name == "node_modules"))
        .last();
    if let Some(modules) = modules {
        return vec![modules.to_owned()];
    }
    let Some(folder) = program.parent().filter(|folder| !holds_home(folder)) else {
        return Vec::new();
    };
    let mut all = vec![folder.to_owned()];
    let prefix = folder.parent().filter(|prefix| prefix.parent().is_some());
    if let Some(prefix) = prefix.filter(|prefix| !in_home(prefix) && !holds_home(prefix))
        && folder.file_name().is_some_and(|name| name == "bin")
    {
        all.extend(["lib", "lib64", "libexec", "share"].map(|beside| prefix.join(beside)));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    struct Stage(tempfile::TempDir);

    impl Stage {
        fn new() -> Stage {
            Stage(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn find(&self, name: &str, folders: &[&str]) -> Option<Program> {
            let folders = folders.iter().map(|folder| self.path(folder));
            let search = std::env::join_paths(folders).unwrap();
            find(
                name,
                &search,
                &self.path("workspace"),
                Some(&self.path("home")),
            )
        }
    }

    #[test]
    fn a_program_is_found_where_path_leads_first() {
        let stage = Stage::new();
        program(&stage.path("b/bin/server"));
        program(&stage.path("c/server"));
        fs::create_dir_all(stage.path("a/server")).unwrap();
        fs::create_dir_all(stage.path("b/lib")).unwrap();
        let found = stage.find("server", &["a", "b/bin", "c"]).unwrap();
        assert_eq!(found.path, stage.path("b/bin/server"));
        assert!(found.readable.contains(&stage.path("b/lib")));
        assert_eq!(stage.find("other", &["a", "b/bin"]), None);
        assert_eq!(stage.find("", &["b/bin"]), None);
    }

    #[test]
    fn a_program_of_the_workspace_is_never_a_server() {
        let stage = Stage::new();
        let planted = stage.path("workspace/node_modules/.bin/server");
        program(&planted);
        fs::create_dir_all(stage.path("bin")).unwrap();
        symlink(&planted, stage.path("bin/server")).unwrap();
        assert_eq!(
            stage.find("server", &["workspace/node_modules/.bin", "bin"]),
            None
        );
        assert_eq!(stage.find(planted.to_str().unwrap(), &[]), None);
        let relative = find(
            "./server",
            OsStr::new("/bin"),
            &stage.path("workspace"),
            None,
        );
        assert_eq!(relative, None);
    }

    #[test]
    fn a_program_of_node_reads_all_its_packages() {
        let stage = Stage::new();
        let real = stage.path("tools/node_modules/pyright/server.js");
        program(&real);
        fs::create_dir_all(stage.path("tools/node_modules/.bin")).unwrap();
        symlink(&real, stage.path("tools/node_modules/.bin/server")).unwrap();
        let found = stage.find("server", &["tools/node_modules/.bin"]).unwrap();
        let modules = stage.path("tools/node_modules");
        assert_eq!(found.readable, [modules.clone(), modules]);
        assert_eq!(found.path, stage.path("tools/node_modules/.bin/server"));
    }

    #[test]
    fn of_the_home_a_program_reads_its_own_folder_at_most() {
        let stage = Stage::new();
        for folder in ["home/.local/share/keyrings", "home/lib"] {
            fs::create_dir_all(stage.path(folder)).unwrap();
        }
        program(&stage.path("home/.local/bin/server"));
        program(&stage.path("home/other"));
        let found = stage.find("server", &["home/.local/bin"]).unwrap();
        let own = stage.path("home/.local/bin");
        assert_eq!(found.readable, [own.clone(), own]);
        assert!(found.files.is_empty());
        let found = stage.find("other", &["home"]).unwrap();
        assert!(found.readable.is_empty());
        assert_eq!(found.files[0], stage.path("home/other"));
    }
}
