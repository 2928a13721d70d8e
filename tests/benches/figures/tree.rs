//! A tree like that of a large project, the same on every machine: 56,000 files of source text in several languages, prose, data and a
//! few binaries, with ignore files that leave some of them out. Made once below `target/` and used again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Another tree has another number, so that an old one is not taken for it.
const EDITION: u32 = 1;
const PACKAGES: usize = 224;
const FILES_OF_A_PACKAGE: usize = 250;
/// Different names in the texts.
const WORDS: usize = 3000;
/// Stands in some files of the tree, and nowhere else.
pub(crate) const RARE: &str = "ReconcileOrphanedLedger";

/// The folder of the tree; made now if it is not there.
pub(crate) fn made() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    fs::create_dir_all(&built).expect("a folder below target");
    let built = built.canonicalize().expect("its path");
    let tree = built.join(format!("tree-{EDITION}"));
    if !tree.exists() {
        let partial = built.join(format!("tree-{EDITION}.partial"));
        let _ = fs::remove_dir_all(&partial);
        make(&partial);
        fs::rename(&partial, &tree).expect("the finished tree at its place");
    }
    tree
}

fn make(root: &Path) {
    let mut random = Random(0x5eed);
    let words: Vec<String> = (0..WORDS).map(|_| word(&mut random)).collect();
    let ignored = "node_modules/\ntarget/\ndist/\nbuild/\n.next/\n.cache/\n*.log\n!keep.log\n";
    write(&root.join(".gitignore"), ignored.as_bytes());
    for package in 0..PACKAGES {
        let name = format!("{}-{package}", words[package]);
        let package = root.join("packages").join(&name);
        write(&package.join(".gitignore"), b"/generated/\n*.tmp\n");
        let folders = folders(&mut random, &words);
        for number in 0..FILES_OF_A_PACKAGE {
            let folder = &folders[random.below(folders.len())];
            let (ending, language) = LANGUAGES[random.skewed(LANGUAGES.len())];
            let stem = &words[random.below(words.len())];
            let path = package
                .join(folder)
                .join(format!("{stem}_{number}.{ending}"));
            let contents = match language {
                Language::Binary => binary(&mut random),
                Language::Text(lines) => text(&mut random, &words, lines),
            };
            write(&path, &contents);
        }
    }
}

fn write(path: &Path, contents: &[u8]) {
    let folder = path.parent().expect("a folder");
    fs::create_dir_all(folder).expect("the folder");
    fs::write(path, contents).expect("the file");
}

/// The folders of one package; the second is left out by its ignore file.
fn folders(random: &mut Random, words: &[String]) -> Vec<String> {
    let mut folders: Vec<String> = ["src", "generated", "tests", "docs", ".config"]
        .map(str::to_owned)
        .into();
    while folders.len() < 26 {
        // The first is chosen most often, so that most of the tree lies under `src`.
        let above = &folders[random.skewed(folders.len())];
        let folder = format!("{above}/{}", words[random.below(words.len())]);
        folders.push(folder);
    }
    folders
}

#[derive(Clone, Copy)]
enum Language {
    Text(&'static [&'static str]),
    Binary,
}

/// Endings, the frequent ones first. In the lines `@` is a name, `%` a number, `^` a name with a capital and `~` a few words.
const LANGUAGES: [(&str, Language); 10] = [
    ("rs", Language::Text(RUST)),
    ("ts", Language::Text(TYPESCRIPT)),
    ("py", Language::Text(PYTHON)),
    ("c", Language::Text(C)),
    ("rs", Language::Text(RUST)),
    ("md", Language::Text(PROSE)),
    ("json", Language::Text(DATA)),
    ("h", Language::Text(C)),
    ("toml", Language::Text(DATA)),
    ("o", Language::Binary),
];

const RUST: &[&str] = &[
    "pub fn @(&mut self, @: &^) -> Result<^, ^Error> {",
    "    let @ = self.@.@(&@, %)?;",
    "    if @.is_empty() || @ > % {",
    "        return Err(^Error::@(@));",
    "    }",
    "    // ~",
    "    for @ in @.iter().filter(|@| @.@ == %) {",
    "        unsafe { @.as_mut_ptr().add(%) };",
    "impl ^ for ^ {",
    "use crate::@::{^, ^};",
    "    /// ~",
    "    match @ { ^::^(@) => @, _ => % }",
    "}",
    "",
];
const TYPESCRIPT: &[&str] = &[
    "export async function @(@: ^, @?: number): Promise<^> {",
    "  const @ = await this.@.@(@, %);",
    "  if (!@ || @.length === %) throw new ^Error(`@ ${@}`);",
    "  return @.map((@) => ({ ...@, @: % }));",
    "import { ^, @ } from './@/@';",
    "  // ~",
    "interface ^ extends ^ { @: string; @: ^[] }",
    "};",
    "",
];
const PYTHON: &[&str] = &[
    "def @(self, @: ^, @=%):",
    "    @ = self.@.get(\"@\", %)",
    "    if @ is None or len(@) > %:",
    "        raise ^Error(f\"~: {@}\")",
    "    for @, @ in enumerate(@):",
    "        @.append(@[%] + @)",
    "from @.@ import ^, @",
    "    % ~",
    "class ^(^):",
    "    return {\"@\": @, \"@\": %}",
    "",
];
const C: &[&str] = &[
    "static int @_@(struct @ *@, size_t @)",
    "\tif (!@ || @->@ < %)",
    "\t\treturn -E^;",
    "\tmemcpy(@->@, @, sizeof(*@) * %);",
    "#include <@/@.h>",
    "/* ~ */",
    "\tfor (i = %; i < @; i++) @[i] = @(i, %);",
    "#define ^_% (% << %)",
    "{",
    "}",
    "",
];
const PROSE: &[&str] = &[
    "~, ~ and ~.",
    "## ~",
    "- `@`: ~",
    "The ~ of @ is ~; see [^](@/@.md#@).",
    "Größe und Prüfung: ~.",
    "```",
    "",
];
const DATA: &[&str] = &[
    "  \"@\": \"~\",",
    "  \"@\": %,",
    "@ = { version = \"%.%.%\", features = [\"@\", \"@\"] }",
    "  \"@\": [%, %, %],",
    "[@.@]",
    "",
];

fn text(random: &mut Random, words: &[String], lines: &[&str]) -> Vec<u8> {
    let size = random.size();
    let mut text = String::with_capacity(size + 200);
    while text.len() < size {
        match random.below(40_000) {
            0 => text.push_str(&format!("    {RARE} ")),
            1..4 => text.push_str("// εκτίμηση και δοκιμή: "),
            4..40 => text.push_str("# TODO: "),
            _ => {}
        }
        for character in lines[random.below(lines.len())].chars() {
            match character {
                '@' => text.push_str(&words[random.skewed(words.len())]),
                '^' => capital(&words[random.skewed(words.len())], &mut text),
                '~' => {
                    for _ in 0..=random.below(6) {
                        text.push_str(&words[random.skewed(words.len())]);
                        text.push(' ');
                    }
                }
                // Writing to a string does not fail.
                '%' => drop(write!(text, "{}", random.below(4096))),
                other => text.push(other),
            }
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn capital(word: &str, text: &mut String) {
    for part in word.split('_') {
        text.push_str(&part[..1].to_uppercase());
        text.push_str(&part[1..]);
    }
}

fn binary(random: &mut Random) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0".to_vec();
    for _ in 0..random.size() / 8 {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes
}

/// A name such as `render_queue`.
fn word(random: &mut Random) -> String {
    const SYLLABLES: [&str; 24] = [
        "con", "fig", "ren", "der", "que", "ue", "par", "se", "buf", "fer", "lo", "ad", "sta",
        "te", "mer", "ge", "tok", "en", "in", "dex", "sche", "ma", "re", "try",
    ];
    let mut word = String::new();
    for part in 0..=random.below(2) {
        if part > 0 {
            word.push('_');
        }
        for _ in 0..=random.below(3) {
            word.push_str(SYLLABLES[random.below(SYLLABLES.len())]);
        }
    }
    word
}

/// The same numbers in the same order on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// As `below`, the smaller the likelier.
    fn skewed(&mut self, end: usize) -> usize {
        let first = self.below(end);
        let second = self.below(first + 1);
        self.below(second + 1)
    }

    /// Bytes of a file: half of them have less than 2 KiB, and a few hundreds.
    fn size(&mut self) -> usize {
        let doublings = self.below(4) + self.below(4) + self.below(3);
        (96 << doublings) + self.below(96 << doublings)
    }
}
