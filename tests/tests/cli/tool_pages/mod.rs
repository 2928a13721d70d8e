//! The pages of the book about the tools are what the binary says of them, and their examples what it answers.
//!
//! `UPDATE_EXPECT=1` before the test writes them anew.

mod examples;
mod page;
mod site;

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use serde_json::Value;

use crate::support::Place;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// What `floe tools` says of every tool, in its order, and as `definition` what the tool says of itself.
fn listed() -> Vec<Value> {
    let tools = Place::new().floe(&["tools", "--toolset", "all", "--output", "json"]);
    let mut tools: Vec<Value> = serde_json::from_value(tools.expect(0).json()).unwrap();
    for tool in &mut tools {
        let made = format!("target/components/{}.json", tool["name"].as_str().unwrap());
        let made = std::fs::read(repository().join(made)).unwrap();
        let made: Value = serde_json::from_slice(&made).unwrap();
        tool["definition"] = made["definition"].clone();
    }
    tools
}

/// Whether the server of the example is there. Where the checks that count run, it is.
fn has_language_server() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::var("CI").as_deref() == Ok("true")
        || std::env::split_paths(&path).any(|folder| folder.join("clangd").is_file())
}

#[test]
fn every_tool_has_a_page_that_says_what_the_binary_does() {
    let site = site::Site::serve(repository().join("examples/library/site"));
    for tool in listed() {
        let name = tool["name"].as_str().unwrap();
        if name == "lsp" && !has_language_server() {
            eprintln!("the page of lsp is not looked at: clangd is missing");
            continue;
        }
        let page = page::page(&tool, &examples::of(name), &site);
        expect_file![repository().join(format!("docs/tools/{name}.md"))].assert_eq(&page);
    }
}

#[test]
fn the_list_of_pages_is_complete_and_none_is_left_from_a_tool_that_is_gone() {
    let tools = listed();
    expect_file![repository().join("docs/tools/README.md")].assert_eq(&page::index(&tools));
    let summary = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let mut pages = vec!["README.md".to_owned()];
    for tool in &tools {
        let page = format!("{}.md", tool["name"].as_str().unwrap());
        assert!(
            summary.contains(&format!("(tools/{page})")),
            "docs/SUMMARY.md lacks {page}"
        );
        pages.push(page);
    }
    let found = std::fs::read_dir(repository().join("docs/tools")).unwrap();
    let mut found: Vec<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    pages.sort();
    assert_eq!(found, pages);
}
