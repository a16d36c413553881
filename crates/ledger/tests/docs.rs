//! docs/ledger.md beside the schema: its queries run, and it names every column.

use rusqlite::Connection;

const DOCS: &str = include_str!("../../../docs/ledger.md");

fn fresh() -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sqlite");
    drop(ledger::Ledger::open(&path).unwrap());
    (directory, Connection::open(path).unwrap())
}

#[test]
fn every_query_in_the_documentation_runs() {
    let (_directory, connection) = fresh();
    let blocks: Vec<&str> = DOCS.split("```sql\n").skip(1).collect();
    assert!(blocks.len() >= 5);
    for block in blocks {
        let (sql, _) = block.split_once("```").unwrap();
        let mut statement =
            connection.prepare(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        assert_eq!(statement.query([]).unwrap().mapped(|_| Ok(())).count(), 0, "{sql}");
    }
}

#[test]
fn every_table_view_and_column_is_documented_in_its_own_section() {
    let (_directory, connection) = fresh();
    let mut columns = connection
        .prepare(
            "SELECT s.name, c.name FROM sqlite_schema AS s JOIN pragma_table_info(s.name) AS c
             WHERE s.type IN ('table', 'view') AND s.name NOT LIKE 'sqlite_%'",
        )
        .unwrap();
    let pairs = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut seen = 0;
    for pair in pairs {
        let (table, column): (String, String) = pair.unwrap();
        let (_, section) = DOCS
            .split_once(&format!("\n### `{table}`"))
            .unwrap_or_else(|| panic!("no section on {table}"));
        let section = section.split("\n### ").next().unwrap_or_default();
        assert!(section.contains(&format!("`{column}`")), "{table}.{column}");
        seen += 1;
    }
    assert!(seen > 100);
}
