//! How the program ends: the exit statuses that scripts rely on, and the one error type that carries one.
//!
//! Every failure of the command line becomes a [`Fault`]; nothing ends the program with a number that is not a [`Status`].

use std::fmt;

/// An exit status with its meaning. The numbers are a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It did what was asked.
    Completed,
    /// The call, the run or the check failed.
    Failed,
    /// Nothing ran: the command line, a file or the configuration is at fault.
    Usage,
    /// A call was denied, or repeated refusals stopped the run.
    Denied,
    /// The person interrupted it.
    Interrupted,
}

impl Status {
    /// The number that the process ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Status::Completed => 0,
            Status::Failed => 1,
            Status::Usage => 2,
            Status::Denied => 3,
            Status::Interrupted => 130,
        }
    }

    /// The status of that number; a number that is none is a failure.
    pub(crate) fn from_code(code: u8) -> Status {
        match code {
            0 => Status::Completed,
            2 => Status::Usage,
            3 => Status::Denied,
            130 => Status::Interrupted,
            _ => Status::Failed,
        }
    }
}

/// Why a command could not be carried out: a status and a message that names the thing, the place and the remedy.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    message: String,
}

impl Fault {
    /// What went wrong before anything ran.
    pub(crate) fn usage(message: impl Into<String>) -> Fault {
        Fault {
            status: Status::Usage,
            message: message.into(),
        }
    }

    /// What went wrong while it ran.
    pub(crate) fn failed(message: impl Into<String>) -> Fault {
        Fault {
            status: Status::Failed,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// What a command ends with.
pub(crate) type Ending = Result<Status, Fault>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_statuses_are_those_of_the_contract() {
        let codes = [
            Status::Completed,
            Status::Failed,
            Status::Usage,
            Status::Denied,
            Status::Interrupted,
        ]
        .map(Status::code);
        assert_eq!(codes, [0, 1, 2, 3, 130]);
        assert!(
            codes
                .into_iter()
                .all(|code| Status::from_code(code).code() == code)
        );
    }
}
