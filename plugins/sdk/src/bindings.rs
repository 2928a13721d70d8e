//! What wit-bindgen makes of `wit/`, with the world that imports everything: a component keeps only what it calls.
//!
//! Use the modules of this crate where there is one for the interface; the others are reached from here.
#![allow(missing_docs, clippy::all, clippy::pedantic)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "tool",
    generate_all,
    additional_derives: [PartialEq, Clone],
    additional_derives_ignore: ["response"],
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "floe_tool::bindings",
});
