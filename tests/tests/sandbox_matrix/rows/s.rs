//! What a command session must survive.

use floe_command::Status;

use crate::row::Row;
use crate::stage::{Stage, finish, read_until};

pub(crate) const ROWS: &[Row] = &[Row::new(
    "S16",
    "an interrupt reaches the trap of a command",
    interrupt_reaches_the_trap,
)];

fn interrupt_reaches_the_trap(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let command = session
            .start("trap 'echo INT; exit 9' INT; echo up; while :; do sleep 0.1; done")
            .await;
        read_until(&command, "up\n").await;
        command.send_signal("SIGINT").unwrap();
        let outcome = finish(&command).await;
        assert_eq!(
            (outcome.stdout.as_str(), outcome.status),
            ("INT\n", Status::Exited(9))
        );
    });
}
