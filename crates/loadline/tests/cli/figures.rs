//! Figures that programs report under names of their own, judged like metrics, from outside.

use serde_json::{Value, json};

use crate::common::{Place, code, stderr, stdout};

/// Batches that print these lines, and which direction of their widgets is good.
fn suite(ours: &str, theirs: &str, better: &str) -> String {
    let target = |name: &str, line: &str| {
        format!(
            "[[target]]\nname = '{name}'\nbatch = ['echo', '{line}']\n\
             figures = {{ widgets_per_s = 'widgets=([0-9.]+)', parts = 'parts=([0-9]+)' }}\n"
        )
    };
    format!(
        "title = 'Widgets'\n{}{}[figures]\nwidgets_per_s = {{ better = '{better}' }}\n\
         [workload]\nservice = 'batch'\noperation = 'run'\n[[clients]]\nconnections = 1\n\
         [require]\nwidgets_per_s = '> 110/s'\n\
         [rounds]\nprimary = 'widgets_per_s'\ndisturbed = 'ignore'\nmeasure = '10ms'\n\
         slice = 'none'\nwarm_up = '0ms'\nat_least = 5\nat_most = 5\n",
        target("ours", ours),
        target("theirs", theirs)
    )
}

#[test]
fn a_figure_of_any_name_carries_verdicts_requirements_and_history() {
    let place = Place::with(&suite("widgets=125 parts=7", "widgets=100 parts=7", "higher"));
    let json = place.json(&["run", "suite.toml", "--wait", "--json"], &[0]);
    let declared = json!([{ "name": "widgets_per_s", "better": "higher", "unit": "1/s" }]);
    assert_eq!(json["run"]["figures"], declared);
    let first = &json["comparisons"][0];
    assert_eq!((&first["metric"], &first["primary"]), (&json!("widgets_per_s"), &json!(true)));
    let near = |value: &Value, to: f64| (value.as_f64().expect("a number") / to - 1.0).abs() < 1e-9;
    assert!(first["verdict"] == "better" && near(&first["ratio"], 1.25), "{first:#}");
    let required = &json["requirements"][0];
    assert!(required["outcome"] == "held" && near(&required["value"], 125.0), "{required:#}");
    let said = json["conclusion"].as_str().expect("text");
    assert!(
        said.contains("ours has a 25 % higher widgets_per_s than theirs (125/s against"),
        "{said}"
    );
    let list = place.json(&["ledger", "list", "--json"], &[0]);
    assert_eq!(
        (&list["runs"][0]["outcome"], &list["runs"][0]["conclusion"]),
        (&json!("fine"), &json["conclusion"])
    );
    let text = stdout(&place.loadline(&["report"]));
    assert!(text.contains("widgets_per_s 125/s"), "{text}");
    // Of so small a program memory may be unseen, and its processes are known all the same.
    assert!(!text.contains("processes are not known"), "{text}");
    let explained = stdout(&place.loadline(&["report", "--explain"]));
    assert!(
        explained.starts_with(&text) && explained.contains("- **requirement**: "),
        "{explained}"
    );
    assert!(text.contains("require widgets_per_s > 110/s: held, 125/s (14 % room)"), "{text}");
    let page = place.path().join("page.html");
    place.loadline(&["report", "--html", page.to_str().expect("UTF-8")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("widgets_per_s"), "the page names the figure");
    place.refuses(&["report", "--html", "nosuch/page.html"], 1, "there is no folder nosuch");
    assert!(!place.path().join("nosuch").exists(), "a mistyped folder is not made");
    let printed = stdout(&place.loadline(&["report", "--html", "-"]));
    assert_eq!(printed, page, "the same is printed");
    assert!(!place.path().join("-").exists());
    let history = place.json(&["history", "--json"], &[4]);
    assert_eq!(history["metric"], "widgets_per_s");
    assert!(near(&history["series"][0]["runs"][0]["figure"], 125.0), "{history:#}");
    place.refuses(&["history", "--metric", "parts"], 2, "there is no metric \"parts\"");
}

#[test]
fn a_comparison_that_may_stop_early_judges_the_figure_in_its_direction() {
    let place = Place::with(&suite("widgets=120 parts=7", "widgets=100 parts=7", "lower"));
    let compare = ["compare", "suite.toml", "--a", "ours", "--b", "theirs", "--budget", "4s"];
    let arguments = [&compare[..], &["--wait", "--json"]].concat();
    let json = place.json(&arguments, &[0, 3]);
    let first = &json["comparisons"][0];
    assert_eq!((&first["metric"], &first["verdict"]), (&json!("widgets_per_s"), &json!("worse")));
    assert_eq!(first["rounds"], 5, "it stopped at its first look");
}

#[test]
fn a_trial_without_the_figure_is_invalid_and_names_what_was_reported() {
    let place = Place::with(&suite("widgets=many parts=7", "widgets=100 parts=7", "higher"));
    let json = place.json(&["run", "suite.toml", "--wait", "--json"], &[4]);
    let trials = json["trials"].as_array().expect("trials");
    let ours = trials.iter().find(|one| one["target"] == "ours").expect("a trial");
    assert_eq!(ours["validity"], "invalid");
    let reason = ours["reason"].as_str().expect("a reason");
    let begin = "no widgets_per_s was reported; the program reported parts, wall_ns, user_ns";
    assert!(reason.starts_with(begin), "{reason}");
    let theirs = trials.iter().find(|one| one["target"] == "theirs").expect("a trial");
    assert_eq!(theirs["validity"], "valid", "{theirs:#}");
}

#[test]
fn a_client_program_reports_figures_in_its_lines() {
    let script = r#"echo '{"t_ns": 1}'
echo '{"t_ns": 10000001, "operations": 1, "figures": {"widgets_per_s": 30}}'
echo '{"t_ns": 20000001, "operations": 1, "figures": {"widgets_per_s": 50}}'"#;
    let text = format!(
        "title = 'Widgets'\n[[target]]\nname = 'ours'\nserve = 'cache'\n\
         client = ['sh', '-c', {script:?}]\n[figures]\nwidgets_per_s = {{ better = 'higher' }}\n\
         [workload]\nservice = 'program'\noperation = 'request'\n[[clients]]\nconnections = 1\n\
         [rounds]\nprimary = 'widgets_per_s'\ndisturbed = 'ignore'\nmeasure = '30ms'\n\
         slice = 'none'\nwarm_up = '0ms'\nat_least = 5\nat_most = 5\n"
    );
    let place = Place::with(&text);
    let json = place.json(&["run", "suite.toml", "--wait", "--json"], &[0]);
    let said = json["conclusion"].as_str().expect("text");
    assert!(said.starts_with("ours had a widgets_per_s of 40.0/s"), "{json:#}");
}

#[test]
fn a_primary_figure_that_nobody_declares_or_can_report_is_refused_before_anything_starts() {
    let whole = suite("widgets=1", "widgets=1", "higher");
    let refuses = |from: &str, to: &str, said: &str| {
        assert!(whole.contains(from), "{from}");
        let output = Place::with(&whole.replace(from, to)).loadline(&["plan", "suite.toml"]);
        assert_eq!(code(&output), 2, "{said}");
        // Long lines are wrapped.
        let words: Vec<String> = stderr(&output).split_whitespace().map(str::to_owned).collect();
        assert!(words.join(" ").replace(" │ ", " ").contains(said), "{}", stderr(&output));
    };
    refuses("primary = 'widgets_per_s'", "primary = 'gadgets'", "[figures] gadgets = { better");
    refuses("primary = 'widgets_per_s'", "primary = 'widget_per_s'", "did you mean");
    refuses("{ widgets_per_s = 'widgets", "{ other = 'widgets", "is not picked out of its output");
    refuses("better = 'higher'", "better = 'more'", "unknown word `more`");
    refuses(
        "better = 'higher'",
        "better = 'higher', unit = 'km'",
        "no unit \"km\"; there are: 1/s",
    );
    refuses("\nwidgets_per_s = {", "\nrate_per_s = {", "is a metric already");
}
