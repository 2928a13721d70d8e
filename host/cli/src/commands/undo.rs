//! `floe undo`: takes back the last edits that tools made in a Workspace.

use floe_workspace::{ChangedSince, Undone, WorkspaceError, undo};

use crate::arguments::{OutputForm, Undo};
use crate::exit::{Ending, Fault, Status};
use crate::home;
use crate::setup::open_workspace;
use crate::terminal::{Keep, Screen, visible};

/// Takes as many edits back as are asked for, the last first, and stops at the first that cannot be.
pub(crate) fn execute(arguments: &Undo) -> Ending {
    let home = home::from_environment()?;
    let workspace = open_workspace(arguments.workspace.as_deref(), &home)?;
    let journals = floe_session::journals(&home);
    let screen = Screen::of_process();
    let changed_since = match arguments.keep_changed {
        true => ChangedSince::Keep,
        false => ChangedSince::Refuse,
    };
    for number in 0..arguments.count {
        let undone = undo(&workspace, &home.locks(), &journals, changed_since)
            .map_err(|error| fault(&error))?;
        match undone {
            Some(undone) => tell(&undone, arguments.output, &screen)?,
            None => {
                if number == 0 {
                    screen.aside("There is no edit to take back in this Workspace.");
                }
                return Ok(Status::Completed);
            }
        }
    }
    Ok(Status::Completed)
}

fn tell(undone: &Undone, form: OutputForm, screen: &Screen) -> Result<(), Fault> {
    match form {
        OutputForm::Json => {
            let line = serde_json::json!({"made_ms": undone.made_ms, "paths": undone.paths, "kept": undone.kept});
            screen.json_result(&format!("{line}\n"));
        }
        OutputForm::Text => {
            for path in &undone.paths {
                screen.result(&format!(
                    "{} is as it was before\n",
                    visible(path, Keep::Nothing)
                ));
            }
            for path in &undone.kept {
                screen.result(&format!(
                    "{} has changed since and is kept as it is\n",
                    visible(path, Keep::Nothing)
                ));
            }
        }
    }
    Ok(())
}

fn fault(error: &WorkspaceError) -> Fault {
    let path = visible(error.path(), Keep::Nothing);
    Fault::failed(match error {
        WorkspaceError::Stale { .. } => format!(
            "Nothing was taken back: \"{path}\" has changed since. Put it back to what the edit left, or pass --keep-changed: then files that have \
             changed since stay as they are, and the rest is taken back."
        ),
        error => format!(
            "Nothing was taken back: {}",
            visible(&error.to_string(), Keep::Nothing)
        ),
    })
}
