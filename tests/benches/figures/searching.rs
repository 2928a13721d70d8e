//! `grep` and `glob`, whole door, beside ripgrep on one thread and beside the loop that one would write first. All of them must find as much
//! in the tree that is the same everywhere; in another, what finds something else is told and not compared.
//! So that all do all the work, the limits of the tools are raised: of files, bytes and matches by their arguments, of the output by
//! the bench. Needs ripgrep, whose path `make bench` gives in `RIPGREP`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use floe_workspace::SKIPPED;
use serde_json::{Value, json};

use crate::beside::{self, Task};
use crate::cold_start::binary;
use crate::figures::Figures;
use crate::house::House;
use crate::rivals::{Ripgrep, line_by_line};
use crate::tree;

/// Runs of each; the first of all warms the page cache and is thrown away.
const ROUNDS: usize = 9;
/// Runs of the loop that one would write first, which takes long.
const ROUNDS_OF_LINES: usize = 3;
/// A row that takes longer has fewer runs, but three.
const ENOUGH: Duration = Duration::from_secs(15);

/// What is searched for.
struct Search {
    what: &'static str,
    pattern: &'static str,
    how: How,
    /// More lines than `max_matches` may show: the numbers of each file are told instead.
    counts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Plain,
    CaseInsensitive,
    Multiline,
}

const fn lines(what: &'static str, pattern: &'static str, how: How) -> Search {
    Search {
        what,
        pattern,
        how,
        counts: false,
    }
}

const fn counts(what: &'static str, pattern: &'static str, how: How) -> Search {
    Search {
        what,
        pattern,
        how,
        counts: true,
    }
}

const MADE: [Search; 10] = [
    lines("a rare literal", tree::RARE, How::Plain),
    counts("a frequent literal", r#"get\(""#, How::Plain),
    lines(
        "an alternation",
        "SchemaError|TokenError|IndexError",
        How::Plain,
    ),
    lines("case-insensitive", "configerror", How::CaseInsensitive),
    lines(
        "a class with a suffix",
        r"[A-Z][a-z]+MergeError\b",
        How::Plain,
    ),
    lines("an anchored line", r"^#define \w+_12\d \(", How::Plain),
    lines("Unicode, no literal", r"\p{Greek}{8,}", How::Plain),
    lines("a whole word", r"\bconfig\b", How::Plain),
    lines("no literal", r"\b\w{27,}\b", How::Plain),
    lines(
        "over two lines",
        r"Err\(\w+::ge\w*\(\w+\)\);\n    \}",
        How::Multiline,
    ),
];

const REAL: [Search; 10] = [
    lines("a rare literal", "PoolingAllocationConfig", How::Plain),
    counts("a frequent literal", "unsafe fn ", How::Plain),
    counts("an alternation", r#"unsafe impl|extern "C""#, How::Plain),
    lines("case-insensitive", "deadlock", How::CaseInsensitive),
    lines(
        "a class with a suffix",
        r"[A-Z][a-z]+Overflow\b",
        How::Plain,
    ),
    lines(
        "an anchored line",
        r"^\s*pub (async )?fn \w+_mut\(",
        How::Plain,
    ),
    lines("Unicode, no literal", r"\p{Cyrillic}{4,}", How::Plain),
    counts("a whole word", r"\btransmute\b", How::Plain),
    lines("no literal", r"\b[a-f0-9]{16}\b", How::Plain),
    lines(
        "over two lines",
        r"impl Drop for \w+ \{\n\s+fn drop",
        How::Multiline,
    ),
];

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let made = tree::made();
    let differ = on(figures, "the made tree", &made, &MADE);
    assert_eq!(
        differ, 0,
        "the made tree is the same everywhere, and so is what is found in it"
    );
    whole_process(figures, &made);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    match cargo.map(|cargo| cargo.join("registry/src")) {
        Some(sources) if sources.is_dir() => {
            on(figures, "cargo's sources", &sources, &REAL);
        }
        _ => eprintln!("bench: no sources of cargo's registry; they are left out"),
    }
}

/// Measures in one tree; how many rows are not comparable.
fn on(figures: &mut Figures<'_>, what: &str, tree: &Path, searches: &[Search]) -> usize {
    let program = ripgrep();
    let skipped = skipped();
    let rg = Ripgrep {
        program: &program,
        tree,
        skipped: &skipped,
    };
    let house = House::of_tools(tree, &["grep", "glob"]);
    let mut tasks = Vec::new();
    for search in searches {
        if figures.wants(&format!("grep in {what}: {}", search.what)) {
            tasks.push(grep(&house, &rg, search));
        }
    }
    figures.add_ratios(&format!("`grep` in {what}"), &tasks);
    let mut all = vec![beside::table(&format!("`grep` in {what}"), &tasks)];
    let differs = |task: &&Task| !task.is_comparable();
    let mut differ = tasks.iter().filter(differs).count();
    let mut tasks = Vec::new();
    for (glob, names) in [("**/*.toml", Some("*.toml")), ("**/*", None)] {
        if figures.wants(&format!("glob in {what}: {glob}")) {
            tasks.push(globbed(&house, &rg, glob, names));
        }
    }
    all.push(beside::table(&format!("`glob` in {what}"), &tasks));
    figures.add_table(all.join("\n"));
    differ += tasks.iter().filter(differs).count();
    differ
}

fn grep(house: &House, rg: &Ripgrep<'_>, search: &Search) -> Task {
    let mut task = Task::new(format!(
        "{}: `{}`",
        search.what,
        search.pattern.replace('|', "\\|")
    ));
    let is_multiline = search.how == How::Multiline;
    let flags: &[&str] = match search.how {
        How::Plain => &[],
        How::CaseInsensitive => &["-i"],
        How::Multiline => &["-U", "--multiline-dotall"],
    };
    let mut arguments = json!({
        "pattern": search.pattern,
        "max_matches": 5000,
        "max_files": 10_000_000,
        "max_bytes": 1_u64 << 36,
        "output_mode": if search.counts { "count" } else { "content" },
    });
    if search.how == How::CaseInsensitive {
        arguments["case_insensitive"] = Value::Bool(true);
    }
    if is_multiline {
        arguments["multiline"] = Value::Bool(true);
    }
    let arguments = arguments.to_string();
    let start = Instant::now();
    for round in rounds(start) {
        let (floe, output) = house.call("grep", &arguments);
        let (by_rg, found_by_rg) = rg.grep(search.pattern, flags, search.counts);
        task.found = sum(&output, search.counts);
        task.found_by_rg = found_by_rg;
        if round < ROUNDS_OF_LINES && !is_multiline {
            let ignores_case = search.how == How::CaseInsensitive;
            let (took, found) = line_by_line(rg.tree, &SKIPPED, search.pattern, ignores_case);
            task.found_by_lines = Some(found);
            task.lines.push(took);
        }
        if round > 0 {
            task.floe.push(floe);
            task.rg.push(by_rg);
        }
        if !task.is_comparable() {
            tell(&task, &output);
            break;
        }
    }
    task
}

fn globbed(house: &House, rg: &Ripgrep<'_>, glob: &str, names: Option<&str>) -> Task {
    let mut task = Task::new(format!("`{glob}`"));
    let arguments = json!({"pattern": glob, "max_results": 5000}).to_string();
    let start = Instant::now();
    for round in rounds(start) {
        let (floe, output) = house.call("glob", &arguments);
        let (by_rg, found_by_rg) = rg.files(names);
        task.found = total(&output);
        task.found_by_rg = found_by_rg;
        if round > 0 {
            task.floe.push(floe);
            task.rg.push(by_rg);
        }
        if !task.is_comparable() {
            tell(&task, &output);
            break;
        }
    }
    task
}

/// The numbers of the runs of one row, the one that warms first.
fn rounds(start: Instant) -> impl Iterator<Item = usize> {
    (0..=ROUNDS).take_while(move |round| *round <= 3 || start.elapsed() < ENOUGH)
}

fn tell(task: &Task, output: &str) {
    eprintln!(
        "bench: not comparable: {}: found {}; the output ends with: {}",
        task.what,
        task.found(),
        tail(output)
    );
}

/// Once as a person or a script would call it, in a process of its own, where the output is cut at its limit as it always is.
fn whole_process(figures: &mut Figures<'_>, tree: &Path) {
    let what = "`floe call grep` for a rare literal in the made tree, whole process";
    if !figures.wants(what) {
        return;
    }
    let state = tempfile::tempdir().expect("a temporary folder");
    let arguments =
        json!({"pattern": tree::RARE, "max_files": 10_000_000, "max_bytes": 1_u64 << 36});
    let mut command = Command::new(binary());
    command
        .args(["call", "grep", &arguments.to_string(), "--workspace"])
        .arg(tree)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", state.path())
        .env("FLOE_HOME", state.path().join("state"))
        .stdin(Stdio::null());
    let mut once = || {
        let start = Instant::now();
        let ended = command
            .output()
            .expect("`floe` is beside this program; run: make bench");
        let took = start.elapsed();
        assert!(ended.status.success(), "{ended:?}");
        took
    };
    once();
    let samples: Vec<Duration> = (0..ROUNDS).map(|_| once()).collect();
    figures.add(what, crate::figures::Goal::None, samples);
}

/// Matches in an output of `grep`.
fn sum(output: &str, counts: bool) -> u64 {
    let is_match = |line: &&str| !line.is_empty() && !line.starts_with('[');
    let lines = output.lines().filter(is_match);
    match counts {
        true => lines
            .filter_map(|line| line.rsplit(':').next()?.parse::<u64>().ok())
            .sum(),
        false => lines.count() as u64,
    }
}

/// Paths that `glob` found, told in its note where it does not show them all.
fn total(output: &str) -> u64 {
    let note = output.lines().rev().find(|line| line.starts_with('['));
    let told = note.and_then(|note| {
        note.split(" newest of ")
            .nth(1)?
            .split(';')
            .next()?
            .parse()
            .ok()
    });
    told.unwrap_or_else(|| output.lines().count() as u64)
}

fn tail(output: &str) -> &str {
    &output[output.floor_char_boundary(output.len().saturating_sub(300))..]
}

fn ripgrep() -> String {
    std::env::var("RIPGREP").expect("RIPGREP names ripgrep's binary; run: make bench")
}

/// A file for ripgrep that names the folders which the tools leave out.
fn skipped() -> PathBuf {
    let file = tree::made().with_file_name("skipped-folders");
    let names: String = SKIPPED.iter().map(|name| format!("{name}/\n")).collect();
    fs::write(&file, names).expect("a file below target");
    file
}
