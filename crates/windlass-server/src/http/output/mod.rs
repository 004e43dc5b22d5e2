//! Answers: views, pages, problem details.

pub(super) mod page;
pub(super) mod problem;
pub(super) mod view;
