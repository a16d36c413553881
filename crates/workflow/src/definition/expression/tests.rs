//! Which steps expressions become, and what is wrong with others.

use super::*;

/// The program with parentheses around each operation.
fn shape(text: &str) -> String {
    let program = parse_expression(text, &mut Texts::default());
    let Ok(program) = program else { return format!("{}", program.expect_err("an error")) };
    let mut stack: Vec<String> = Vec::new();
    for step in &program.steps {
        let mut pop = || stack.pop().unwrap_or_default();
        let text = match step {
            Step::Integer(number) => number.to_string(),
            Step::State(state) => state.word().to_owned(),
            Step::Event(set) => if *set { "set" } else { "clear" }.to_owned(),
            Step::Operand(Operand::Node(path)) => path.to_string(),
            Step::Operand(Operand::Variable(path, name)) => format!("{path}:{name}"),
            Step::Operand(Operand::Upward(name)) => format!(":{name}"),
            Step::Operand(Operand::Flag(path, flag)) => format!("{path}<{}>", flag.word()),
            Step::Not => format!("!{}", pop()),
            Step::Function(_) => format!("f({})", pop()),
            Step::Binary(operation) => {
                let (right, left) = (pop(), pop());
                format!("({left} {} {right})", operation.word())
            }
        };
        stack.push(text);
    }
    assert_eq!(stack.len(), 1, "{text}");
    stack.remove(0)
}

#[test]
fn strengths_are_those_of_ecflow() {
    let a = "(a EQUAL complete)";
    let (b, c) = ("(b EQUAL complete)", "(c EQUAL complete)");
    assert_eq!(
        shape("a == complete and b == complete or c == complete"),
        format!("(({a} AND {b}) OR {c})")
    );
    assert_eq!(
        shape("a == complete or b == complete and c == complete"),
        format!("({a} OR ({b} AND {c}))")
    );
    assert_eq!(
        shape("a == complete and (b == complete) or c == complete"),
        format!("({a} AND ({b} OR {c}))")
    );
    assert_eq!(shape("1 + 2 * 3 == 9"), "(((1 PLUS 2) MULTIPLY 3) EQUAL 9)");
    assert_eq!(shape("not a == complete and b:x"), format!("(!{a} AND b:x)"));
    assert_eq!(shape("! (a == complete)"), format!("!{a}"));
    assert_eq!(shape("a:m == not 1"), "(a:m EQUAL !1)");
}

#[test]
fn all_operands_are_read() {
    assert_eq!(shape("/s/f<flag>late"), "/s/f<late>");
    assert_eq!(shape("/<flag>zombie"), "/<zombie>");
    assert_eq!(shape("../../a.b/c:x ge 1and :Y"), "((../../a.b/c:x GREATER_EQUAL 1) AND :Y)");
    assert_eq!(shape("4/2 == 2"), "((4 DIVIDE 2) EQUAL 2)");
    assert_eq!(shape("a:x/b:y"), "(a:x DIVIDE b:y)");
    assert_eq!(shape("a:e == set"), "(a:e EQUAL set)");
    assert_eq!(shape("a:e != set:x"), "(a:e NOT_EQUAL set:x)");
    assert_eq!(shape("./a eqcomplete"), "(./a EQUAL complete)");
    assert_eq!(
        shape("cal::date_to_julian(a:YMD) + 1 == cal::julian_to_date( 3 )"),
        "((f(a:YMD) PLUS 1) EQUAL f(3))"
    );
}

#[test]
fn errors_say_where_and_what() {
    assert_eq!(
        shape("a == completed"),
        "at character 6: expected complete, aborted, queued, \
        active, submitted or unknown"
    );
    assert!(shape("a:m == -1").contains("without a sign"));
    assert!(shape("").contains("a path"));
    assert!(shape("a == complete or").contains("character 17"));
    assert!(shape("a:m == 99999999999").contains("2147483647"));
    assert!(shape("not(a == complete)").starts_with("at character"));
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(shape(&deep).contains("128 parentheses"));
}

#[test]
fn a_long_row_needs_no_deep_stack() {
    let row = vec!["(a == complete)"; 20_000].join(" and ");
    let program = parse_expression(&row, &mut Texts::default()).expect("an expression");
    assert_eq!(program.steps.len(), 4 * 20_000 - 1);
}

#[test]
fn terms_are_parentheses_and_what_or_joins() {
    let terms = |text: &str| read(text, &mut Texts::default(), &mut Vec::new());
    assert_eq!(terms("a:x and b:x and not c:x"), Ok(1));
    assert_eq!(terms("a:x and b:x or c:x"), Ok(2));
    // Those in the parentheses count, too; around one operand they are arithmetic.
    assert_eq!(terms("a:x and (b:x or c:x) and (d:x)"), Ok(5));
    assert_eq!(terms("1 + 2 * (3 + 4) == 5"), Ok(1));
    let part = |text: String| vec![Part { joint: Joint::First, text: Text::from(text) }];
    let made = |text| expression(part(text), &mut Texts::default());
    let row = |joint: &str, count| vec!["a == complete"; count].join(joint);
    assert!(made(row(" and ", 30_000)).is_ok() && made(row(" or ", TERMS_LIMIT)).is_ok());
    let refused = made(row(" or ", TERMS_LIMIT + 1)).expect_err("too many").to_string();
    assert!(refused.contains("2000 terms"), "{refused}");
    let kept =
        kept_expression(part(row(" or ", TERMS_LIMIT + 1)), &mut Texts::default(), &mut Vec::new());
    assert!(kept.program.is_some(), "what this program has kept goes on");
}

#[test]
fn ecflow_s_parser_stops_behind_what_is_an_expression_by_itself() {
    for (text, rest) in [
        ("a ==", "a =="),
        ("a == complete and", "and"),
        ("a == complete and b == complete or not", "or not"),
        ("a:m + 1 ==", "=="),
        ("a == complete # it", "# it"),
        ("(a == complete", ""),
    ] {
        assert!(parse_expression(text, &mut Texts::default()).is_err(), "{text}");
        assert_eq!(stop(text).and_then(|at| text.get(at..)), Some(rest), "{text}");
    }
    let deep = "(".repeat(PARENTHESES_LIMIT + 1);
    assert_eq!(stop(&deep), None);
}
