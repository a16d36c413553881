//! The tree of suites, families and tasks, and the rules by which its states change.
