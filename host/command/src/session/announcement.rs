//! Whether the end of a kept command is still to be told: to the observer once, when it has ended and nobody is about to
//! read that, and to the model once, by whoever takes the report first. A read that tells the end, a kill and disposing
//! make a report superfluous.

/// How far it has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announcement {
    /// Nobody asked for it, or it is no longer wanted.
    #[default]
    Off,
    /// The end is to be told.
    Armed,
    /// The command has ended and the observer was told; the report waits to be taken.
    Due,
    /// The model was told, by a report or by a read.
    Told,
}

impl Announcement {
    /// Asks for it, or no longer does. What was told is not told again.
    pub(crate) fn want(&mut self, wanted: bool) {
        match (*self, wanted) {
            (Announcement::Off, true) => *self = Announcement::Armed,
            (Announcement::Armed | Announcement::Due, false) => *self = Announcement::Off,
            _ => {}
        }
    }

    /// A read has told the end.
    pub(crate) fn read(&mut self) {
        *self = Announcement::Told;
    }

    /// The command has ended and nobody holds it: true where the observer is to be told now.
    pub(crate) fn fall_due(&mut self) -> bool {
        let due = *self == Announcement::Armed;
        if due {
            *self = Announcement::Due;
        }
        due
    }

    /// Takes the report: true for the one who is to tell it.
    pub(crate) fn take(&mut self) -> bool {
        let due = *self == Announcement::Due;
        if due {
            *self = Announcement::Told;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_due_once_and_taken_once() {
        let mut announcement = Announcement::default();
        announcement.want(true);
        assert!(!announcement.take(), "it has not ended yet");
        assert!(announcement.fall_due() && !announcement.fall_due());
        assert!(announcement.take() && !announcement.take());
        announcement.want(true);
        assert!(!announcement.fall_due(), "what was told stays told");
    }

    #[test]
    fn nothing_is_due_where_nobody_wants_it_or_a_read_told_it() {
        let mut announcement = Announcement::default();
        assert!(!announcement.fall_due());
        announcement.want(true);
        announcement.want(false);
        assert!(!announcement.fall_due());
        announcement.want(true);
        assert!(announcement.fall_due());
        announcement.read();
        assert!(!announcement.take());
    }
}
