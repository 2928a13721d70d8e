//! Names that a person may have meant: the remedy of a "does not exist".

use rustix::fs::OFlags;

use crate::listing::{each_name, open_directory};
use crate::place::Place;
use crate::{RelativePath, Workspace};

/// How many suggestions are made.
const SUGGESTIONS: usize = 3;
/// How many names are looked at.
const NAMES: usize = 10_000;
/// How many pairs of characters are compared in all, so that a directory of very long names costs milliseconds.
const COMPARISONS: usize = 4_000_000;

impl Workspace {
    /// Up to three paths that exist and look like `path`, which does not: the first part that is missing is compared with the names beside
    /// it. Nearest first. Empty where nothing is near, and where `path` is outside.
    pub fn near_names(&self, path: &str) -> Vec<String> {
        let Ok(place) = self.place(path) else {
            return Vec::new();
        };
        let mut directory = RelativePath::root();
        let mut parts = place.path.parts();
        while let Some(part) = parts.next() {
            let next = directory.entry(part);
            if place.at(next.clone()).open(OFlags::PATH).is_ok() {
                directory = next;
                continue;
            }
            let rest = parts.collect::<Vec<_>>().join("/");
            return suggest(&place, &directory, part, &rest);
        }
        Vec::new()
    }
}

fn suggest(place: &Place<'_>, directory: &RelativePath, missing: &str, rest: &str) -> Vec<String> {
    let mut near: Vec<(usize, String)> = near_in(&place.at(directory.clone()), missing)
        .into_iter()
        .map(|(distance, name)| {
            let named = directory.entry(&name);
            let whole = (!rest.is_empty())
                .then(|| RelativePath::normalised(&format!("{}/{rest}", named.as_str())))
                .flatten()
                .map(|path| place.at(path))
                .filter(|whole| whole.open(OFlags::PATH).is_ok());
            (distance, whole.unwrap_or_else(|| place.at(named)).shown())
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, path)| path).collect()
}

/// The nearest names of a directory with their distance, at most [`SUGGESTIONS`].
fn near_in(directory: &Place<'_>, missing: &str) -> Vec<(usize, String)> {
    let mut near: Vec<(usize, String)> = Vec::new();
    let missing_folded = missing.to_lowercase();
    let length = missing_folded.chars().count();
    let farthest = (length / 3).clamp(1, 8);
    let mut names = 0;
    let mut comparisons = 0;
    let Ok(mut directory) = open_directory(directory) else {
        return near;
    };
    // What was found before a read error is as good a suggestion as any.
    let _ = each_name(&mut directory, |name, _| {
        names += 1;
        // A name that could forge the line it is shown on is no help.
        if let Ok(name) = name.to_str()
            && !name.contains(char::is_control)
        {
            let folded = name.to_lowercase();
            let other = folded.chars().count();
            if other.abs_diff(length) <= farthest {
                comparisons += other * length;
                let distance = strsim::osa_distance(&missing_folded, &folded);
                if distance <= farthest && name != missing {
                    near.push((distance, name.to_owned()));
                    near.sort();
                    near.truncate(SUGGESTIONS);
                }
            }
        }
        names < NAMES && comparisons < COMPARISONS
    });
    near
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;

    #[test]
    fn a_mistyped_name_finds_the_nearest_three_that_exist() {
        let fixture = Fixture::new();
        for name in [
            "src/main.rs",
            "src/mail.rs",
            "src/maid.rs",
            "src/mart.rs",
            "src/lib.rs",
        ] {
            fixture.write(name, "");
        }
        assert_eq!(
            fixture.workspace.near_names("src/mian.rs"),
            ["src/main.rs", "src/maid.rs", "src/mail.rs"]
        );
    }

    #[test]
    fn a_mistyped_folder_is_mended_and_the_rest_kept_where_it_exists() {
        let fixture = Fixture::new();
        fixture.write("source/main.rs", "");
        assert_eq!(
            fixture.workspace.near_names("sorce/main.rs"),
            ["source/main.rs"]
        );
        assert_eq!(fixture.workspace.near_names("sorce/other.rs"), ["source"]);
    }

    #[test]
    fn letter_case_does_not_count_and_nothing_near_gives_nothing() {
        let fixture = Fixture::new();
        fixture.write("README.md", "");
        assert_eq!(fixture.workspace.near_names("readme.md"), ["README.md"]);
        assert!(fixture.workspace.near_names("Cargo.toml").is_empty());
        assert!(fixture.workspace.near_names("../secre").is_empty());
    }

    #[test]
    fn a_name_with_control_characters_is_not_suggested() {
        let fixture = Fixture::new();
        fixture.write("name\n", "");
        fixture.write("name\u{1b}", "");
        assert!(fixture.workspace.near_names("name").is_empty());
    }

    #[test]
    fn a_link_without_a_target_is_not_suggested_for_itself() {
        let fixture = Fixture::new();
        std::os::unix::fs::symlink("nowhere", fixture.path().join("link")).unwrap();
        assert!(fixture.workspace.near_names("link").is_empty());
    }
}
