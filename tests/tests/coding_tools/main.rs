//! The coding tools, as a model meets them: every call goes through a real Session to a built component and back. One file per
//! subject; a test's name is the behaviour that it proves.

mod conversation;
mod editing;
mod hazards;
mod meanwhile;
mod patch_texts;
mod patching;
mod named;
mod races;
mod reading;
mod rig;
mod searching;
mod small_disk;
