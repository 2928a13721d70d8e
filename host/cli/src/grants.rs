//! What the person grants for one run on the command line, beside what the configuration says: `--allow-read` and
//! `--allow-write`. They are the person's own word, so nobody is asked again.

use std::path::{Path, PathBuf};

use floe_sandbox::RESERVED;

use crate::arguments::SessionArguments;
use crate::config::Shell;

/// Adds the granted paths to what commands may read and change.
pub(crate) fn allow_paths(
    shell: &mut Shell,
    arguments: &SessionArguments,
    floe_home: &Path,
) -> Result<(), String> {
    let floe_home = floe_home.canonicalize();
    let floe_home = floe_home.as_deref().ok();
    for (flag, paths, into) in [
        ("--allow-read", &arguments.allow_read, &mut shell.extra_read),
        (
            "--allow-write",
            &arguments.allow_write,
            &mut shell.extra_write,
        ),
    ] {
        for path in paths {
            into.push(granted(flag, path, floe_home)?);
        }
    }
    Ok(())
}

/// The path as it is now: what is put in its place later is not what was granted.
fn granted(flag: &str, path: &Path, floe_home: Option<&Path>) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| {
        format!("{flag} {path:?} cannot be used: {error}. Name a file or folder that is there.")
    })?;
    let is_private = |own: &Path| real.starts_with(own) || own.starts_with(&real);
    if floe_home.is_some_and(is_private) {
        return Err(format!(
            "{flag} {path:?} is, holds or lies in the folder where Floe keeps its own files, which no command reaches. Name \
             another."
        ));
    }
    let mut made = RESERVED.iter();
    if let Some(made) = made.find(|made| path.starts_with(made) || real.starts_with(made)) {
        return Err(format!(
            "{flag} {path:?} cannot be given: {made} belongs to the sandbox itself, which makes its own. Name another."
        ));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_granted_as_what_it_leads_to_and_floes_own_folder_never() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["data", "floe/sessions"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
        let floe = root.join("floe");
        let ask = |name: &str| granted("--allow-read", &root.join(name), Some(&floe));
        assert_eq!(ask("link").unwrap(), root.join("data"));
        assert!(
            ask("missing")
                .unwrap_err()
                .contains("Name a file or folder that is there.")
        );
        std::os::unix::fs::symlink("/proc/self", root.join("process")).unwrap();
        for path in [
            Path::new("/proc"),
            Path::new("/proc/self/fd"),
            Path::new("/dev"),
            Path::new("/dev/null"),
            Path::new("/sys"),
            &root.join("process"),
        ] {
            let refused = granted("--allow-read", path, None).unwrap_err();
            assert!(
                refused.contains("belongs to the sandbox itself"),
                "{refused}"
            );
        }
        for name in ["floe", "floe/sessions", ""] {
            assert!(
                ask(name).unwrap_err().contains("no command reaches"),
                "{name}"
            );
        }
    }
}
