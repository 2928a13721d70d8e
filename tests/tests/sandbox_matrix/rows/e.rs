//! What a command may not do, and what it must still be able to do.

mod git;
mod kernel;
mod left_behind;
mod machine;
mod missing;
mod network;
mod paths;
mod proxy;
mod secrets;

use crate::row::Row;

pub(crate) fn rows() -> Vec<Row> {
    [
        paths::ROWS,
        git::ROWS,
        secrets::ROWS,
        network::ROWS,
        proxy::ROWS,
        kernel::ROWS,
        left_behind::ROWS,
        machine::ROWS,
        missing::ROWS,
    ]
    .concat()
}
