//! `floe undo`: takes back the last edits that tools made in a Workspace.

use floe_workspace::{Undone, WorkspaceError, undo};

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
    for number in 0..arguments.count {
        let undone = undo(&workspace, &home.locks(), &journals).map_err(|error| fault(&error))?;
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
            let line = serde_json::json!({"made_ms": undone.made_ms, "paths": undone.paths});
            screen.json_result(&format!("{line}\n"));
        }
        OutputForm::Text => {
            for path in &undone.paths {
                screen.result(&format!(
                    "{} is as it was before\n",
                    visible(path, Keep::Nothing)
                ));
            }
        }
    }
    Ok(())
}

fn fault(error: &WorkspaceError) -> Fault {
    let error = visible(&error.to_string(), Keep::Nothing);
    Fault::failed(format!(
        "Nothing was taken back: {error} Take the later change back first, or keep what is there."
    ))
}
