//! Where a download goes: a path of the Workspace, from what the model says and what the address suggests. Pure; whether the path may be
//! written is decided by the host when it is staged.

/// Where downloads go that nobody named a place for.
const FOLDER: &str = "downloads";

/// The path of a download. `workspace` is where the Workspace is for tools.
///
/// # Errors
/// A sentence for the model.
pub(crate) fn of(destination: Option<&str>, url: &str, workspace: &str) -> Result<String, String> {
    let Some(destination) = destination else {
        return Ok(format!("{FOLDER}/{}", floe_web::file_name(url)));
    };
    let named = destination.trim();
    if named.is_empty() {
        return Err("dest_path cannot be empty. Leave it out for downloads/ and the name that the address suggests.".into());
    }
    let inside = named
        .strip_prefix(workspace)
        .and_then(|rest| rest.strip_prefix('/'));
    let relative = inside.unwrap_or(named);
    if relative.starts_with(['/', '~']) {
        return Err(format!(
            "dest_path must be relative — got absolute path \"{named}\". Name a path below the Workspace."
        ));
    }
    if relative.split('/').any(|part| part == "..") {
        return Err(format!("dest_path may not contain '..': \"{named}\"."));
    }
    if relative.chars().any(char::is_control) {
        return Err("dest_path holds a control character.".into());
    }
    match relative.strip_suffix('/') {
        Some(folder) => Ok(format!("{folder}/{}", floe_web::file_name(url))),
        None => Ok(relative.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.example/x/report.pdf?v=1";

    fn place(destination: Option<&str>) -> Result<String, String> {
        of(destination, URL, "/workspace")
    }

    #[test]
    fn without_a_destination_it_is_downloads_and_the_name_in_the_address() {
        assert_eq!(place(None).unwrap(), "downloads/report.pdf");
        assert_eq!(
            of(None, "https://a.example/", "/workspace").unwrap(),
            "downloads/download.bin"
        );
        assert_eq!(
            of(None, "https://a.example/%2e%2e%2f%2e%2e", "/workspace").unwrap(),
            "downloads/download.bin"
        );
    }

    #[test]
    fn a_destination_is_a_path_of_the_workspace_or_a_folder() {
        for (destination, expected) in [
            ("a.pdf", "a.pdf"),
            ("docs/new/a.pdf", "docs/new/a.pdf"),
            ("docs/", "docs/report.pdf"),
            (" a.pdf ", "a.pdf"),
            ("/workspace/a.pdf", "a.pdf"),
            ("a..b/c", "a..b/c"),
        ] {
            assert_eq!(place(Some(destination)).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn an_empty_an_absolute_and_a_climbing_destination_are_refused() {
        for (destination, start) in [
            ("", "dest_path cannot be empty"),
            ("  ", "dest_path cannot be empty"),
            (
                "/etc/passwd",
                "dest_path must be relative — got absolute path",
            ),
            (
                "/workspaces/a",
                "dest_path must be relative — got absolute path",
            ),
            ("~/a", "dest_path must be relative — got absolute path"),
            ("../a", "dest_path may not contain '..'"),
            ("a/../../b", "dest_path may not contain '..'"),
            ("/workspace/../a", "dest_path may not contain '..'"),
            ("a\nb", "dest_path holds a control character"),
        ] {
            let refused = place(Some(destination)).unwrap_err();
            assert!(refused.starts_with(start), "{destination:?}: {refused}");
        }
    }
}
