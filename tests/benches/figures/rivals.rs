//! What does the same work as the tools that search: ripgrep on one thread, and the loop that one would write first.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use regex::RegexBuilder;

/// ripgrep, on one thread and on the files that the tools search: hidden ones too, ignore files of the tree itself and no others,
/// the folders that are always left out, none over 5 MiB.
pub(crate) struct Ripgrep<'a> {
    pub(crate) program: &'a str,
    pub(crate) tree: &'a Path,
    /// Names the folders that are left out.
    pub(crate) skipped: &'a Path,
}

impl Ripgrep<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(["-j1", "--no-config", "--hidden", "--no-require-git"])
            .args(["--no-ignore-parent", "--no-ignore-global", "--ignore-file"])
            .arg(self.skipped)
            .current_dir(self.tree)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Searches; the sum of matching lines. `count` prints the numbers of each file, else each line is printed.
    pub(crate) fn grep(&self, pattern: &str, flags: &[&str], count: bool) -> (Duration, u64) {
        let mut command = self.command();
        command
            .args(["--encoding", "none", "--max-filesize", "5M"])
            .args(flags)
            .args(if count {
                &["-c"][..]
            } else {
                &["-n", "-H", "--no-heading"]
            })
            .args(["-e", pattern, "./"]);
        let (took, output) = run(&mut command);
        let found = match count {
            true => output
                .lines()
                .filter_map(|line| line.rsplit(':').next()?.parse::<u64>().ok())
                .sum(),
            false => output.lines().count() as u64,
        };
        (took, found)
    }

    /// Names the files, or those whose names match; how many. A type and no glob, since a glob would bring back what is ignored.
    pub(crate) fn files(&self, names: Option<&str>) -> (Duration, u64) {
        let mut command = self.command();
        command.arg("--files");
        if let Some(names) = names {
            command.args(["--type-add", &format!("wanted:{names}"), "--type", "wanted"]);
        }
        let (took, output) = run(&mut command);
        (took, output.lines().count() as u64)
    }
}

fn run(command: &mut Command) -> (Duration, String) {
    let start = Instant::now();
    let output = command.output().expect("`rg` runs");
    let took = start.elapsed();
    (took, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Walks on one thread, reads each file and matches each of its lines with the `regex` crate; how many match.
pub(crate) fn line_by_line(
    tree: &Path,
    skipped: &'static [&'static str],
    pattern: &str,
    case_insensitive: bool,
) -> (Duration, u64) {
    let start = Instant::now();
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(case_insensitive)
        .build()
        .expect("a pattern");
    let walk = ignore::WalkBuilder::new(tree)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .filter_entry(|entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            !(is_folder
                && entry.depth() > 0
                && skipped.iter().any(|name| entry.file_name() == *name))
        })
        .build();
    let mut found = 0;
    let mut shown = String::new();
    for entry in walk.flatten() {
        if !entry.file_type().is_some_and(|kind| kind.is_file())
            || entry
                .metadata()
                .is_ok_and(|metadata| metadata.len() > 5 << 20)
        {
            continue;
        }
        let Ok(text) = fs::read_to_string(entry.path()) else {
            continue;
        };
        if text.as_bytes()[..text.len().min(8192)].contains(&0) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if regex.is_match(line) {
                found += 1;
                shown.push_str(&format!(
                    "{}:{}:{line}\n",
                    entry.path().display(),
                    number + 1
                ));
            }
        }
    }
    std::hint::black_box(shown);
    (start.elapsed(), found)
}
