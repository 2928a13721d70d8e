//! The tools between the model and the person: `ask_clarification`, `todowrite` and `plan_exit`.

mod asking;
mod planning;
mod todos;
