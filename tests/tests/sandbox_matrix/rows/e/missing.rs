//! Machines on which a wall cannot be built: nothing runs, or what the person has accepted, never less in silence.
//!
//! Each such machine is a host of its own, below this one: in a user namespace of its own, or under a filter.

use std::process::Command;

use crate::poor_machine::{Accepted, Lack};
use crate::row::{Exception, Row, Walls};
use crate::stage::Stage;
use crate::trial;

/// The four machines are about which walls a Session gets; none are forced there.
const CHOSEN: &[Exception] = &[Exception {
    walls: Some(Walls::Bwrap),
    who: None,
    reason: "the machine decides there which walls a Session gets: once is enough",
}];

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E34",
        "without user namespaces nothing runs, unless the person accepts less, and then it is told",
        |stage| without(stage, Lack::UserNamespaces),
    )
    .except(CHOSEN),
    Row::new(
        "E34",
        "under a container's filter nothing runs, unless the person accepts less, and then it is told",
        |stage| without(stage, Lack::SystemCalls),
    )
    .except(CHOSEN),
    Row::new(
        "E34",
        "without Landlock nothing runs for root, and for others the walls that stand are told",
        |stage| without(stage, Lack::Landlock),
    )
    .except(CHOSEN),
    Row::new(
        "E34",
        "where /proc cannot be mounted nothing runs, unless the person accepts less, and then it is told",
        |stage| without(stage, Lack::Proc),
    )
    .except(CHOSEN),
];

/// What a host on such a machine says of its command.
fn said(stage: &Stage, lack: Lack, accepted: Accepted) -> String {
    let host = trial::poor_host(stage, lack, accepted);
    let mut command = match lack.preparation() {
        None => host,
        Some(script) => {
            let mut command = Command::new("unshare");
            command
                .args(["--user", "--map-root-user", "--mount", "bash", "-euc"])
                .arg(format!("{script}; exec \"$@\""))
                .arg("host")
                .arg(host.get_program())
                .args(host.get_args());
            command
        }
    };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn without(stage: &Stage, lack: Lack) {
    // Looked at from now on.
    drop(stage.session());
    let is_root = rustix::process::geteuid().is_root() || lack.preparation().is_some();
    let text = said(stage, lack, Accepted::Nothing);
    if lack == Lack::Landlock && !is_root {
        assert!(text.contains("ran native"), "{text}");
        assert!(text.contains("landlock inactive"), "{text}");
        std::fs::remove_file(stage.workspace.join("it-ran")).unwrap();
    } else {
        let (layer, remedy) = lack.names();
        for word in ["refused", layer, remedy, "--unsafe-no-sandbox"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!stage.has("it-ran"), "{text}");
    }
    let text = said(stage, lack, Accepted::NoWalls);
    assert!(text.contains("ran UNCONFINED"), "{text}");
    assert!(stage.has("it-ran"));
    if lack != Lack::Landlock {
        let text = said(stage, lack, Accepted::Landlock);
        assert!(text.contains("ran landlock"), "{text}");
        assert!(text.contains("warned"), "{text}");
        assert!(text.contains("nothing outside was written"), "{text}");
    }
}
