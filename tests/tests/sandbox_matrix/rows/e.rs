//! What a command may not do.

use crate::row::Row;
use crate::stage::Stage;

pub(crate) const ROWS: &[Row] = &[Row::new(
    "E2",
    "a link of the Workspace that leads out changes nothing there",
    links_lead_nowhere,
)];

fn links_lead_nowhere(stage: &Stage) {
    std::os::unix::fs::symlink(&stage.outside, stage.workspace.join("l")).unwrap();
    let session = stage.session();
    session.all_refused(&[
        "echo a > l/f",
        "rm l/file",
        "cat l/file",
        "chmod 600 l/file",
    ]);
    assert_eq!(session.ok("echo mine > f; cat f"), "mine\n");
}
