//! What PostgreSQL says of how it executes a statement: the answer of `EXPLAIN (FORMAT JSON)`, of a
//! statement that was executed (ANALYZE, BUFFERS) or only planned.

use std::fmt::Write as _;

use serde_json::Value;

/// The most steps of a plan that are read.
const MAX_STEPS: usize = 60;

/// One step of a plan. Rows and blocks are those of all its loops.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// How many steps it is below the first.
    pub(super) depth: usize,
    /// What is done: `Seq Scan`.
    pub(super) name: String,
    /// The table that it reads.
    pub(super) table: Option<String>,
    pub(super) index: Option<String>,
    /// What rows that it has read have to meet.
    pub(super) filter: Option<String>,
    /// Rows as estimated, of one loop.
    pub(super) estimated: f64,
    /// Rows as they came, of one loop; `None` where it was not executed.
    pub(super) rows: Option<f64>,
    pub(super) loops: f64,
    /// Rows that it has read and that don't meet its filter.
    pub(super) removed: f64,
    /// Blocks that lay in the shared buffers, with those of the steps below.
    pub(super) hit: f64,
    /// Blocks that had to be read, with those of the steps below.
    pub(super) read: f64,
    /// Blocks of temporary files that were written, with those of the steps below.
    pub(super) temporary: f64,
    /// What it has sorted on the disk, in KiB.
    pub(super) sorted_kib: f64,
}

impl Step {
    /// Rows as they came, of all loops.
    pub(super) fn kept(&self) -> Option<f64> {
        self.rows.map(|rows| rows * self.loops)
    }

    /// How many times too many or too few rows were estimated.
    pub(super) fn misjudged(&self) -> Option<f64> {
        let rows = self.rows.filter(|_| self.loops > 0.0)?.max(1.0);
        let estimated = self.estimated.max(1.0);
        Some((estimated / rows).max(rows / estimated))
    }

    fn line(&self) -> String {
        let mut line = "  ".repeat(self.depth) + &self.name;
        let index = self.index.iter().map(|index| format!(" using {index}"));
        line.extend(index.chain(self.table.iter().map(|table| format!(" on {table}"))));
        // Written to a string, which doesn't fail.
        let _ = match self.kept() {
            None => write!(line, ": {} rows estimated", self.estimated),
            Some(_) if self.loops == 0.0 => write!(line, ": never executed"),
            Some(kept) => {
                let estimated = self.estimated * self.loops;
                write!(line, ": {kept} rows, {estimated} estimated")
            }
        };
        for (count, what) in [
            (self.removed, "rows removed by its filter"),
            (self.hit, "blocks hit"),
            (self.read, "blocks read"),
            (self.temporary, "temporary blocks written"),
            (self.sorted_kib, "KiB sorted on the disk"),
        ] {
            if count > 0.0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
        line
    }
}

/// A plan, from its first step on, each before those below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan(pub(super) Vec<Step>);

impl Plan {
    /// Reads an answer; `None` where it is none.
    pub(super) fn read(answer: &str) -> Option<Self> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let mut steps = Vec::new();
        add(&answer[0]["Plan"], 0, &mut steps);
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// A line for each step.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(Step::line).collect();
        lines.join("\n")
    }

    /// The tables that it reads.
    pub(super) fn tables(&self) -> Vec<String> {
        let mut tables: Vec<String> = self.0.iter().filter_map(|step| step.table.clone()).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }
}

fn add(step: &Value, depth: usize, steps: &mut Vec<Step>) {
    let Some(name) = step["Node Type"].as_str().filter(|_| steps.len() < MAX_STEPS) else { return };
    let text = |name: &str| step[name].as_str().map(str::to_owned);
    let number = |name: &str| step[name].as_f64().unwrap_or(0.0);
    let loops = number("Actual Loops");
    let is_on_disk = step["Sort Space Type"] == "Disk";
    steps.push(Step {
        depth,
        name: name.to_owned(),
        table: text("Relation Name"),
        index: text("Index Name"),
        filter: text("Filter"),
        estimated: number("Plan Rows"),
        rows: step["Actual Rows"].as_f64(),
        loops,
        removed: number("Rows Removed by Filter") * loops,
        hit: number("Shared Hit Blocks"),
        read: number("Shared Read Blocks"),
        temporary: number("Temp Written Blocks"),
        sorted_kib: if is_on_disk { number("Sort Space Used") } else { 0.0 },
    });
    for below in step["Plans"].as_array().into_iter().flatten() {
        add(below, depth + 1, steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_step_by_step_and_what_is_none_is_none() {
        let answer = r#"[{"Plan": {"Node Type": "Sort", "Plan Rows": 40, "Actual Rows": 1000,
            "Actual Loops": 1, "Sort Space Used": 176, "Sort Space Type": "Disk",
            "Shared Hit Blocks": 6, "Shared Read Blocks": 2, "Temp Written Blocks": 23, "Plans": [
            {"Node Type": "Index Scan", "Relation Name": "conditions", "Index Name": "by_time",
             "Filter": "(until > 5)", "Plan Rows": 1, "Actual Rows": 50, "Actual Loops": 20,
             "Rows Removed by Filter": 3}]}, "Execution Time": 1.5}]"#;
        let plan = Plan::read(answer).expect("a plan");
        let lines = "Sort: 1000 rows, 40 estimated, 6 blocks hit, 2 blocks read, \
                     23 temporary blocks written, 176 KiB sorted on the disk\n  \
                     Index Scan using by_time on conditions: 1000 rows, 20 estimated, \
                     60 rows removed by its filter";
        assert_eq!(plan.text(), lines);
        assert_eq!(plan.tables(), ["conditions"]);
        assert_eq!(plan.0[1].misjudged(), Some(50.0));
        for none in ["", "[]", "{}", "[{\"Plan\": 3}]", "[{\"Plan\": {\"Node Type\": 1}}]"] {
            assert_eq!(Plan::read(none), None);
        }
        for cut in 0..answer.len() {
            assert_eq!(Plan::read(&answer[..cut]), None);
        }
    }
}
