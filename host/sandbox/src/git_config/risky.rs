//! Which settings make git start a program, read a further file that says so, or fetch by a program.

use super::syntax::Setting;

/// By section and key; `*` stands for any.
#[rustfmt::skip]
const EXECUTED: &[(&str, &str)] = &[
    ("alias", "*"), ("pager", "*"), ("include", "path"), ("includeif", "path"),
    ("core", "alternaterefscommand"), ("core", "askpass"), ("core", "attributesfile"), ("core", "editor"),
    ("core", "fsmonitor"), ("core", "gitproxy"), ("core", "hookspath"), ("core", "pager"),
    ("core", "sshcommand"), ("core", "worktree"),
    ("browser", "cmd"), ("browser", "path"), ("man", "cmd"), ("man", "path"), ("web", "browser"),
    ("credential", "helper"), ("diff", "command"), ("diff", "external"), ("diff", "textconv"),
    ("difftool", "cmd"), ("difftool", "path"), ("mergetool", "cmd"), ("mergetool", "path"),
    ("filter", "clean"), ("filter", "smudge"), ("filter", "process"), ("gpg", "program"),
    ("gpg", "defaultkeycommand"), ("guitool", "cmd"), ("hook", "command"), ("imap", "tunnel"),
    ("init", "templatedir"), ("instaweb", "httpd"), ("interactive", "difffilter"),
    ("lfs", "clean"), ("lfs", "path"), ("lfs", "smudge"), ("lfs", "standalonetransferagent"),
    ("merge", "driver"), ("protocol", "allow"), ("remote", "receivepack"), ("remote", "uploadpack"), ("remote", "vcs"),
    ("sendemail", "cccmd"), ("sendemail", "headercmd"), ("sendemail", "sendmailcmd"), ("sendemail", "smtpserver"),
    ("sendemail", "tocmd"), ("sequence", "editor"), ("tar", "command"), ("trailer", "cmd"), ("trailer", "command"),
    ("uploadpack", "packobjectshook"),
];

/// Settings of addresses: an address of the form `PROGRAM::…` is fetched by that program.
const ADDRESSES: [(&str, &str); 5] = [
    ("remote", "url"),
    ("remote", "pushurl"),
    ("submodule", "url"),
    ("url", "insteadof"),
    ("url", "pushinsteadof"),
];

/// Whether git executes or obeys what the setting names.
pub(super) fn is_executed(setting: &Setting) -> bool {
    let (section, key) = (setting.section.as_str(), setting.key.as_str());
    let listed = EXECUTED
        .iter()
        .any(|(known, name)| *known == section && (*name == key || *name == "*"));
    let by_program = ADDRESSES.contains(&(section, key))
        && (setting.value.contains("::")
            || setting
                .subsection
                .as_deref()
                .is_some_and(|sub| sub.contains("::")));
    let own_update = section == "submodule" && key == "update" && setting.value.starts_with('!');
    (listed && !is_harmless(setting)) || by_program || own_update
}

/// What git itself writes, or what switches something off.
fn is_harmless(setting: &Setting) -> bool {
    match (setting.section.as_str(), setting.key.as_str()) {
        // The daemon that is built in.
        ("core", "fsmonitor") => ["true", "false", "yes", "no", "on", "off", "1", "0", ""]
            .contains(&setting.value.to_ascii_lowercase().as_str()),
        ("pager", _) => ["true", "false", ""].contains(&setting.value.as_str()),
        ("protocol", _) => setting.value != "always",
        // A submodule's git directory says where its files are.
        ("core", "worktree") => !setting.value.starts_with('/') && setting.value.starts_with("../"),
        _ => false,
    }
}
