//! A function has at most 70 lines, from its `fn` to its closing brace, so that it can be read
//! without scrolling. Functions inside macro calls (`proptest!`) count too.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::Rule;
use crate::tidy::tree::{Finding, Tree};

const LIMIT_LINES: usize = 70;

pub(super) const RULE: Rule = Rule {
    name: "function-length",
    doc: "A function has at most 70 lines, so that it can be read without scrolling.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let Ok(syntax) = file.syntax() else { continue };
        let mut functions = Functions::default();
        functions.visit_file(syntax);
        for Function { name, first, last } in functions.found {
            let count = last - first + 1;
            if count > LIMIT_LINES {
                let advice = format!("split `{name}`: it has {count} lines ({LIMIT_LINES})");
                found.push(file.finding(first, advice));
            }
        }
    }
    found
}

struct Function {
    name: String,
    first: usize,
    last: usize,
}

#[derive(Default)]
struct Functions {
    found: Vec<Function>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let name = signature.ident.to_string();
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        self.found.push(Function { name, first, last });
    }

    /// A macro's input is not syntax yet, but `fn`, a name and the next braces are a function
    /// in all that anyone writes; a semicolon before the braces ends a mere declaration.
    fn add_from(&mut self, tokens: TokenStream) {
        let mut open: Option<(String, usize)> = None;
        let mut after_fn = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if ident == "fn" => {
                    after_fn = Some(ident.span().start().line);
                }
                TokenTree::Ident(ident) => {
                    if let Some(first) = after_fn.take() {
                        open = Some((ident.to_string(), first));
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => open = None,
                TokenTree::Group(group) => {
                    let last = group.span_close().end().line;
                    if group.delimiter() == Delimiter::Brace
                        && let Some((name, first)) = open.take()
                    {
                        self.found.push(Function { name, first, last });
                    }
                    self.add_from(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl Visit<'_> for Functions {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.add_from(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    /// A function of so many lines, its attribute and comment not counted.
    fn function(count: usize) -> String {
        format!("/// Doc.\n#[test]\nfn f() {{\n{}}}\n", "    g();\n".repeat(count - 2))
    }

    #[test]
    fn a_function_may_have_seventy_lines_and_no_more() {
        assert!(lines(&RULE, &[("a.rs", &function(70))]).is_empty());
        assert_eq!(lines(&RULE, &[("a.rs", &function(71))]), [3]);
    }

    #[test]
    fn methods_defaults_nested_and_macro_functions_count() {
        let inside = |open: &str, close: &str| format!("{open}\n{}{close}\n", function(71));
        for text in [
            inside("impl T {", "}"),
            inside("trait T {", "}"),
            inside("mod m {", "}"),
            inside("proptest! {", "}"),
        ] {
            assert_eq!(lines(&RULE, &[("a.rs", &text)]), [4], "{text}");
        }
        assert_eq!(lines(&RULE, &[("a.rs", &inside("fn outer() {", "}"))]), [1, 4]);
    }

    #[test]
    fn a_function_pointer_in_a_macro_is_no_function() {
        let body = "    1,\n".repeat(80);
        let text = format!("m! {{ fn declared(x: u8); struct S {{ a: fn(u8), b: [\n{body}] }} }}");
        assert!(lines(&RULE, &[("a.rs", &text)]).is_empty());
    }
}
