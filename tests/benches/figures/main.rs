//! The figures of docs/performance.md, all in one run: criterion drives them and keeps their history, and one table at the end puts
//! each beside its goal. A figure that misses its goal is a row of the table and never an error.
//!
//! `make bench`

mod beside;
mod call;
mod cancel;
mod cold_start;
mod confinement;
mod delta;
mod figures;
mod files;
mod house;
mod machine;
mod rivals;
mod searching;
mod sessions;
mod trace;
mod tree;
mod web;

use criterion::Criterion;
use figures::Figures;

fn main() {
    let before = machine::line();
    let mut criterion = Criterion::default().configure_from_args();
    let mut figures = Figures::new(&mut criterion);
    call::measure(&mut figures);
    delta::measure(&mut figures);
    cancel::measure(&mut figures);
    cold_start::measure(&mut figures);
    confinement::measure(&mut figures);
    sessions::measure(&mut figures);
    trace::measure(&mut figures);
    files::measure(&mut figures);
    web::measure(&mut figures);
    searching::measure(&mut figures);
    let table = figures.table();
    criterion.final_summary();
    println!("\n{before}\n\n{table}");
}
