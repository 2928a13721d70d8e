//! Where state lives: `FLOE_HOME`, else the XDG data folder. Nothing is created here; whoever writes makes what it needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use floe_protocol::Home;

use crate::exit::Fault;

/// The home that the environment names.
pub(crate) fn from_environment() -> Result<Home, Fault> {
    let working_directory = std::env::current_dir().map_err(|error| {
        Fault::usage(format!(
            "The current folder cannot be found: {error}. Change into a folder that exists."
        ))
    })?;
    choose(|name| std::env::var_os(name), &working_directory)
}

/// The home, with relative names taken from `working_directory`.
fn choose(
    variable: impl Fn(&str) -> Option<OsString>,
    working_directory: &Path,
) -> Result<Home, Fault> {
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(home) = set("FLOE_HOME") {
        return Ok(Home::new(working_directory.join(home)));
    }
    // A relative XDG folder is to be ignored, says its specification.
    if let Some(data) = set("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
        return Ok(Home::new(data.join("floe")));
    }
    match set("HOME").filter(|path| path.is_absolute()) {
        Some(home) => Ok(Home::new(home.join(".local/share/floe"))),
        None => Err(Fault::usage(
            "There is no place for Floe's state: neither FLOE_HOME, XDG_DATA_HOME nor HOME is set. Set FLOE_HOME to a \
             folder of yours.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        choose(variable, Path::new("/here"))
            .ok()
            .map(|home| home.root().to_owned())
    }

    #[test]
    fn the_home_is_floe_home_else_the_xdg_folder_else_below_home() {
        let all = [("FLOE_HOME", "/f"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(chosen(&all), Some("/f".into()));
        assert_eq!(chosen(&all[1..]), Some("/x/floe".into()));
        assert_eq!(chosen(&all[2..]), Some("/h/.local/share/floe".into()));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_relative_home_is_below_the_current_folder_and_an_empty_one_is_none() {
        assert_eq!(
            chosen(&[("FLOE_HOME", "state")]),
            Some("/here/state".into())
        );
        assert_eq!(
            chosen(&[("FLOE_HOME", ""), ("HOME", "/h")]),
            Some("/h/.local/share/floe".into())
        );
    }
}
