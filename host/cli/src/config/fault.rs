//! What is wrong with a configuration file: the file, the line, the key, the reason and the remedy.

use std::fmt;
use std::path::PathBuf;

/// One fault of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFault {
    /// The file as it was found.
    pub(crate) file: PathBuf,
    /// From 1; none where the file as a whole is at fault.
    pub(crate) line: Option<usize>,
    /// The dotted key; empty where none is at fault.
    pub(crate) key: String,
    /// What is wrong with it.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) remedy: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.reason)?;
        if !self.remedy.is_empty() {
            write!(f, "\n  {}", self.remedy)?;
        }
        Ok(())
    }
}

/// All faults of a file, in the order of its lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFaults(pub(crate) Vec<ConfigFault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}

impl From<ConfigFault> for ConfigFaults {
    fn from(fault: ConfigFault) -> ConfigFaults {
        ConfigFaults(vec![fault])
    }
}
