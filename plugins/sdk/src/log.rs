//! Lines for the person who debugs the tool. The model never sees them.

use crate::bindings::floe::tool::log as host;
pub use host::Level;

/// Writes a line with named values.
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<host::Field> = fields
        .iter()
        .map(|(name, value)| host::Field {
            name: (*name).into(),
            value: (*value).into(),
        })
        .collect();
    host::write(level, message, &fields);
}

/// Writes a line at debug level.
pub fn debug(message: &str) {
    write(Level::Debug, message, &[]);
}

/// Writes a line at info level.
pub fn info(message: &str) {
    write(Level::Info, message, &[]);
}

/// Writes a line at warn level.
pub fn warn(message: &str) {
    write(Level::Warn, message, &[]);
}
