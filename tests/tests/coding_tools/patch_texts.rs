//! `apply_patch` with `patch`: texts that add, update, delete and move files, and texts that are refused.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::rig::{Answer, Rig};

/// The most hunks of one patch.
const HUNKS: usize = 256;

type Files = &'static [(&'static str, &'static str)];

/// A patch, the Workspace before it, and what it leaves.
struct Good {
    about: &'static str,
    before: Files,
    patch: &'static str,
    after: Files,
    /// What the result says beside the files.
    remark: &'static str,
}

const GOOD: &[Good] = &[
    Good {
        about: "a file is added, with the folders above it",
        before: &[],
        patch: "*** Add File: src/new.rs\n+fn new() {}\n+\n+// end\n",
        after: &[("src/new.rs", "fn new() {}\n\n// end\n")],
        remark: "src/new.rs: created (+3 −0)",
    },
    Good {
        about: "a file without lines is added",
        before: &[],
        patch: "*** Add File: empty\n",
        after: &[("empty", "")],
        remark: "Applied 1 edit(s) across 1 file(s)",
    },
    Good {
        about: "a file is deleted",
        before: &[("a", "x\n"), ("b", "y\n")],
        patch: "*** Delete File: a\n",
        after: &[("b", "y\n")],
        remark: "a: deleted (+0 −1)",
    },
    Good {
        about: "a file is updated where a hunk's lines are",
        before: &[("a", "one\ntwo\nthree\n")],
        patch: "*** Update File: a\n@@\n one\n-two\n+2\n three\n",
        after: &[("a", "one\n2\nthree\n")],
        remark: "a: 1 replacement(s) (+1 −1)",
    },
    Good {
        about: "a hunk needs no mark if it is the first",
        before: &[("a", "one\ntwo\n")],
        patch: "*** Update File: a\n-two\n+2\n",
        after: &[("a", "one\n2\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "several hunks follow each other through a file",
        before: &[("a", "x\nk\nx\nk\nx\n")],
        patch: "*** Update File: a\n@@\n-x\n+1\n@@\n-x\n+2\n@@\n-x\n+3\n",
        after: &[("a", "1\nk\n2\nk\n3\n")],
        remark: "a: 3 replacement(s) (+3 −3)",
    },
    Good {
        about: "a line after @@ leads to the place behind it",
        before: &[("a", "fn a() {\n    x\n}\nfn b() {\n    x\n}\n")],
        patch: "*** Update File: a\n@@ fn b() {\n-    x\n+    y\n",
        after: &[("a", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "several of these lines lead there together, whatever indents them",
        before: &[(
            "a",
            "class A:\n    def run(self):\n        pass\nclass B:\n    def run(self):\n        pass\n",
        )],
        patch: "*** Update File: a\n@@ class B:\n@@ def run(self):\n-        pass\n+        return 1\n",
        after: &[(
            "a",
            "class A:\n    def run(self):\n        pass\nclass B:\n    def run(self):\n        return 1\n",
        )],
        remark: "a: 1 replacement(s)",
    },
    Good {
        about: "a hunk at the end of the file is looked for there",
        before: &[("a", "end\nmiddle\nend\n")],
        patch: "*** Update File: a\n@@\n-end\n+fin\n*** End of File\n",
        after: &[("a", "end\nmiddle\nfin\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "lines that are only added go behind the line that leads there, else to the end",
        before: &[("a", "one\ntwo\n"), ("b", "one\n")],
        patch: "*** Update File: a\n@@ one\n+between\n*** Update File: b\n@@\n+last\n",
        after: &[("a", "one\nbetween\ntwo\n"), ("b", "one\nlast\n")],
        remark: "Applied 2 edit(s) across 2 file(s)",
    },
    Good {
        about: "a file is moved as it is",
        before: &[("a", "one\n")],
        patch: "*** Update File: a\n*** Move to: deep/b\n",
        after: &[("deep/b", "one\n")],
        remark: "Applied 1 edit(s) across 1 file(s)",
    },
    Good {
        about: "a file is moved and updated at once",
        before: &[("a", "one\ntwo\n")],
        patch: "*** Update File: a\n*** Move to: b\n@@\n one\n-two\n+2\n",
        after: &[("b", "one\n2\n")],
        remark: "b: moved",
    },
    Good {
        about: "all four kinds of change at once",
        before: &[("a", "one\n"), ("b", "two\n"), ("c", "three\n")],
        patch: "*** Add File: d\n+four\n*** Delete File: a\n*** Update File: b\n-two\n+2\n*** Update File: c\n*** Move to: e\n-three\n+3\n",
        after: &[("b", "2\n"), ("d", "four\n"), ("e", "3\n")],
        remark: "Applied 4 edit(s) across 4 file(s)",
    },
    Good {
        about: "a file takes the place of one that goes",
        before: &[("a", "new\n"), ("b", "old\n")],
        patch: "*** Delete File: b\n*** Update File: a\n*** Move to: b\n-new\n+newer\n",
        after: &[("b", "newer\n")],
        remark: "a: deleted",
    },
    Good {
        about: "a file that was moved away leaves room for another",
        before: &[("a", "one\n")],
        patch: "*** Update File: a\n*** Move to: b\n*** Add File: a\n+other\n",
        after: &[("a", "other\n"), ("b", "one\n")],
        remark: "b: created",
    },
    Good {
        about: "a file that the patch adds can be updated by it",
        before: &[],
        patch: "*** Add File: a\n+one\n*** Update File: a\n-one\n+two\n",
        after: &[("a", "two\n")],
        remark: "a: created (+1 −0)",
    },
    Good {
        about: "CRLF stays CRLF, in lines that are added too",
        before: &[("a", "one\r\ntwo\r\n")],
        patch: "*** Update File: a\n one\n-two\n+2\n+3\n",
        after: &[("a", "one\r\n2\r\n3\r\n")],
        remark: "(+2 −1)",
    },
    Good {
        about: "a patch that is written with CRLF means the same",
        before: &[("a", "one\ntwo\n")],
        patch: "*** Update File: a\r\n@@\r\n one\r\n-two\r\n+2\r\n",
        after: &[("a", "one\n2\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "a byte order mark and a missing final newline are kept",
        before: &[("a", "\u{FEFF}one\ntwo")],
        patch: "*** Update File: a\n-one\n+1\n@@\n-two\n+2\n",
        after: &[("a", "\u{FEFF}1\n2")],
        remark: "a: 2 replacement(s)",
    },
    Good {
        about: "empty lines of a hunk are lines of the file",
        before: &[("a", "one\n\ntwo\n")],
        patch: "*** Update File: a\n one\n\n-two\n+2\n",
        after: &[("a", "one\n\n2\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "the ranges of a unified diff are passed over",
        before: &[("a", "fn a() {\n    x\n}\n")],
        patch: "*** Update File: a\n@@ -1,3 +1,3 @@ fn a() {\n-    x\n+    y\n",
        after: &[("a", "fn a() {\n    y\n}\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "space at the ends of lines may differ, and what is kept stays as it is",
        before: &[("a", "one  \ntwo\t\nthree\n")],
        patch: "*** Update File: a\n one\n-two\n+2\n",
        after: &[("a", "one  \n2\nthree\n")],
        remark: "patch line 3: matched ignoring space at the ends of lines",
    },
    Good {
        about: "space around lines may differ",
        before: &[("a", "    one\n    two\n")],
        patch: "*** Update File: a\n one\n-two\n+    2\n",
        after: &[("a", "    one\n    2\n")],
        remark: "patch line 3: matched ignoring space around lines",
    },
    Good {
        about: "typographic punctuation may differ",
        before: &[("a", "say “hi” – now\n")],
        patch: "*** Update File: a\n-say \"hi\" - now\n+bye\n",
        after: &[("a", "bye\n")],
        remark: "patch line 3: matched ignoring typographic punctuation",
    },
    Good {
        about: "lines that look like marks are lines where they are marked",
        before: &[("a", "*** End Patch\n@@ x\n")],
        patch: "*** Update File: a\n-*** End Patch\n+*** Begin Patch\n @@ x\n",
        after: &[("a", "*** Begin Patch\n@@ x\n")],
        remark: "(+1 −1)",
    },
    Good {
        about: "paths may hold spaces and points",
        before: &[("a b/c.d", "x\n")],
        patch: "*** Update File: ./a b/../a b/c.d\n-x\n+y\n",
        after: &[("a b/c.d", "y\n")],
        remark: "a b/c.d: ",
    },
];

/// A patch that is refused, whole as it is given, and how the message begins.
const BAD: &[(&str, &str)] = &[
    ("", "The patch is empty."),
    ("\n \n", "The patch is empty."),
    (
        "*** Begin Patch\n*** End Patch",
        "The patch changes nothing",
    ),
    (
        "*** Update File: a\n-one\n+1\n",
        "patch line 1: expected `*** Begin Patch`",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n-one\n+1\n",
        "patch line 4: expected `*** End Patch`",
    ),
    ("*** Begin Patch", "patch line 1: expected `*** End Patch`"),
    (
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n",
        "patch line 1: expected `*** Begin Patch`",
    ),
    (
        "*** Begin Patch\nnonsense\n*** End Patch",
        "patch line 2: expected `*** Add File:`",
    ),
    (
        "*** Begin Patch\n*** Rename File: a\n*** End Patch",
        "patch line 2: expected `*** Add File:`",
    ),
    (
        "*** Begin Patch\n*** Add File:\n+x\n*** End Patch",
        "patch line 2: a path is missing",
    ),
    (
        "*** Begin Patch\n*** Delete File: \n*** End Patch",
        "patch line 2: a path is missing",
    ),
    (
        "*** Begin Patch\n*** Add File: n\nx\n*** End Patch",
        "patch line 3: a line of a new file must start with +",
    ),
    (
        "*** Begin Patch\n*** Delete File: a\n-one\n*** End Patch",
        "patch line 3: nothing may follow `*** Delete File:`",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "patch line 2: the update of a changes nothing",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch",
        "patch line 3: the hunk is empty",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n@@ one\n*** End Patch",
        "patch line 3: the hunk is empty",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch",
        "patch line 3: `*** End of File` before any hunk",
    ),
    (
        "*** Begin Patch\n*** Update File: a\nbare\n*** End Patch",
        "patch line 3: a line of a hunk must start with",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n-one\n+1\n*** Move to: b\n*** End Patch",
        "patch line 5: `*** Move to:` must follow `*** Update File:`",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n*** Move to:\n-one\n*** End Patch",
        "patch line 3: a path is missing",
    ),
    // What cannot be made of what is there.
    (
        "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
        "patch line 2: \"a\" exists already",
    ),
    (
        "*** Begin Patch\n*** Add File: n\n+x\n*** Add File: ./n\n+y\n*** End Patch",
        "patch line 4: \"./n\" exists already",
    ),
    (
        "*** Begin Patch\n*** Delete File: none\n*** End Patch",
        "patch line 2: failed to resolve none: it does not exist.",
    ),
    (
        "*** Begin Patch\n*** Update File: none\n-x\n*** End Patch",
        "patch line 2: failed to resolve none: it does not exist.",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch",
        "patch line 2: \"b\" exists already",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n-nowhere\n*** End Patch",
        "patch line 3: the lines from `nowhere` on were not found",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n@@ nowhere\n-one\n*** End Patch",
        "patch line 3: the line `nowhere` was not found",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n-two\n@@\n-one\n*** End Patch",
        "patch line 4: the lines from `one` on were not found",
    ),
    (
        "*** Begin Patch\n*** Update File: twice\n-x\n*** End Patch",
        "patch line 3: the lines from `x` on were not found, or not in one place only,",
    ),
    (
        "*** Begin Patch\n*** Add File: ../out\n+x\n*** End Patch",
        "patch line 2: path not allowed: ../out.",
    ),
    (
        "*** Begin Patch\n*** Update File: a\n*** Move to: /etc/out\n*** End Patch",
        "patch line 2: path not allowed: /etc/out.",
    ),
    (
        "*** Begin Patch\n*** Add File: .git/hooks/pre-push\n+x\n*** End Patch",
        "patch line 2: \".git/hooks/pre-push\" is protected",
    ),
    (
        "*** Begin Patch\n*** Delete File: d\n*** End Patch",
        "patch line 2: failed to read d: \"d\" is a directory",
    ),
];

async fn apply(rig: &Rig, patch: &str) -> Answer {
    rig.call("apply_patch", json!({ "patch": patch })).await
}

fn wrapped(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

/// All files below a folder.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            found.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
    found
}

fn furnished(before: Files) -> Rig {
    let rig = Rig::new();
    for (path, contents) in before {
        rig.write(path, contents);
    }
    rig
}

#[tokio::test]
async fn a_good_patch_leaves_exactly_what_it_says() {
    for good in GOOD {
        let rig = furnished(good.before);
        let answer = apply(&rig, &wrapped(good.patch)).await;
        let text = answer.completed();
        assert!(text.contains(good.remark), "{}: {text}", good.about);
        let expected: BTreeMap<String, String> = good
            .after
            .iter()
            .map(|(path, contents)| ((*path).to_owned(), (*contents).to_owned()))
            .collect();
        assert_eq!(files(&rig.workspace()), expected, "{}", good.about);
    }
}

#[tokio::test]
async fn a_bad_patch_says_where_it_is_bad_and_changes_nothing() {
    let rig = furnished(&[
        ("a", "one\ntwo\n"),
        ("b", "three\n"),
        ("twice", "  x\n\n\tx\n"),
        ("d/e", ""),
    ]);
    let before = files(&rig.workspace());
    for (patch, begins) in BAD {
        let answer = apply(&rig, patch).await;
        assert!(answer.failed().starts_with(begins), "{patch:?}: {answer:?}");
        assert_eq!(files(&rig.workspace()), before, "{patch:?}");
    }
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_patch_is_told_at_once() {
    let rig = furnished(&[("a", "one\ntwo\n")]);
    let body = "*** Add File: a\n+x\n*** Update File: a\n@@\n-nowhere\n@@\n-two\n+2\n@@\n-two\n*** Delete File: none\n";
    let answer = apply(&rig, &wrapped(body)).await;
    let faults: Vec<&str> = answer.failed().lines().collect();
    assert_eq!(
        faults,
        [
            "patch line 2: \"a\" exists already",
            "patch line 5: the lines from `nowhere` on were not found, or not in one place only, in a; read it and copy the lines as they stand there, with more around them",
            "patch line 10: the lines from `two` on were not found, or not in one place only, in a; read it and copy the lines as they stand there, with more around them",
            "patch line 12: failed to resolve none: it does not exist.",
        ]
    );
    assert_eq!(rig.read_text("a"), "one\ntwo\n");
}

#[tokio::test]
async fn a_patch_has_at_most_256_hunks() {
    let rig = Rig::new();
    let lines =
        |word: &str| -> String { (0..=HUNKS).map(|line| format!("{word} {line}\n")).collect() };
    rig.write("a", lines("old"));
    let patch = |hunks: usize| {
        let hunks: String = (0..hunks)
            .map(|line| format!("@@\n-old {line}\n+new {line}\n"))
            .collect();
        wrapped(&format!("*** Update File: a\n{hunks}"))
    };
    let refused = apply(&rig, &patch(HUNKS + 1)).await;
    assert!(
        refused.failed().contains("more than 256 hunks"),
        "{refused:?}"
    );
    assert_eq!(rig.read_text("a"), lines("old"));
    let answer = apply(&rig, &patch(HUNKS)).await;
    assert!(
        answer.completed().starts_with("Applied 256 edit(s)"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("a").matches("new").count(), HUNKS);
}

#[tokio::test]
async fn a_moved_and_an_updated_file_keep_their_modes() {
    let rig = furnished(&[("run", "one\n"), ("tool", "one\n")]);
    let mode = |path: &str| fs::metadata(rig.path(path)).unwrap().permissions().mode() & 0o7777;
    for path in ["run", "tool"] {
        fs::set_permissions(rig.path(path), fs::Permissions::from_mode(0o4755)).unwrap();
    }
    let body =
        "*** Update File: run\n*** Move to: bin/run\n-one\n+1\n*** Update File: tool\n-one\n+1\n";
    apply(&rig, &wrapped(body)).await.completed();
    assert_eq!((mode("bin/run"), mode("tool")), (0o755, 0o755));
}

#[tokio::test]
async fn a_file_in_utf_16_is_patched_in_utf_16() {
    let wide = |text: &str| -> Vec<u8> {
        let marked = format!("\u{FEFF}{text}");
        marked.encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    let rig = Rig::new();
    rig.write("a", wide("one é\r\ntwo\r\n"));
    apply(
        &rig,
        &wrapped("*** Update File: a\n one é\n-two\n+zwei ü\n"),
    )
    .await
    .completed();
    assert_eq!(rig.read("a"), wide("one é\r\nzwei ü\r\n"));
}

#[tokio::test]
async fn a_patch_can_be_far_longer_than_what_is_shown_of_it() {
    let rig = Rig::new();
    let body: String = (0..20_000).map(|line| format!("+line {line}\n")).collect();
    let answer = apply(&rig, &wrapped(&format!("*** Add File: a\n{body}"))).await;
    assert!(answer.completed().len() < 16_000, "{}", answer.text.len());
    assert!(
        answer.text.trim_end().ends_with("more lines of the diff]"),
        "{}",
        answer.text
    );
    assert_eq!(rig.read_text("a").lines().count(), 20_000);
}
