//! Pages of lists: search, sorting, and which rows one page has.

use serde::Serialize;

use super::params::Pairs;

/// The most rows of a page, and how many it has where none are stated.
const MAX_PAGE: usize = 1_000;
const PAGE: usize = 25;

/// What is asked of a list that comes in pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageParams {
    page: usize,
    size: usize,
    search: String,
    sort: String,
    is_descending: bool,
}

impl PageParams {
    /// Reads the parameters; `None` where no page is asked for. What can't be read is as if it were
    /// missing.
    pub fn read(pairs: &Pairs) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<i64>().ok();
        let clamp = |number: i64| usize::try_from(number.max(1)).unwrap_or(usize::MAX);
        let page = number(pairs.get("page")?).map_or(1, clamp);
        let size = pairs.get("page_size").and_then(number).map_or(PAGE, clamp).min(MAX_PAGE);
        let search = pairs.get("search").unwrap_or("").trim().to_uppercase();
        let sort = pairs.get("sort").unwrap_or("").to_owned();
        let is_descending = pairs.get("order") == Some("desc");
        Some(Self { page, size, search, sort, is_descending })
    }
}

/// What rows are sorted by. What is missing comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey<'a> {
    /// A number.
    Number(i64),
    /// A number of an interval.
    Place(u64),
    /// A text, by its bytes.
    Text(&'a str),
    /// Nothing.
    Missing,
}

impl<'a> SortKey<'a> {
    /// The key of a text that may be missing.
    pub fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Missing, Self::Text)
    }
}

/// A row of a list that comes in pages.
pub trait Browse {
    /// What it is sorted by where nothing else is asked for.
    const SORT: &'static str;

    /// Whether one of the texts that are searched passes.
    fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool;

    /// What it is sorted by; `None` where it has no such column.
    fn key(&self, sort: &str) -> Option<SortKey<'_>>;
}

/// A page.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    count: usize,
    page: usize,
    page_size: usize,
    total_pages: usize,
    results: Vec<T>,
}

/// A page of rows, which come in order of their numbers.
pub fn paged<R: Browse, T>(
    rows: impl Iterator<Item = R> + Clone,
    params: &PageParams,
    view: impl Fn(R) -> T,
) -> Page<T> {
    let PageParams { page, size, search, sort, is_descending } = params;
    let (page, page_size, first) = (*page, *size, (page - 1).saturating_mul(*size));
    let is_found = |text: &str| text.to_uppercase().contains(search.as_str());
    let found = rows.filter(|row| search.is_empty() || row.any_text(&is_found));
    let is_known = found.clone().next().is_some_and(|row| row.key(sort).is_some());
    let sort = if is_known { sort } else { R::SORT };
    let (count, results) = if sort == "id" && !is_descending {
        (found.clone().count(), found.skip(first).take(*size).map(view).collect())
    } else {
        let mut rows: Vec<R> = found.collect();
        // The order of equals stays that of their numbers.
        rows.sort_by(|a, b| match is_descending {
            true => b.key(sort).cmp(&a.key(sort)),
            false => a.key(sort).cmp(&b.key(sort)),
        });
        (rows.len(), rows.into_iter().skip(first).take(*size).map(view).collect())
    };
    Page { count, page, page_size, total_pages: count.div_ceil(page_size).max(1), results }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Browse for (u32, Option<&'static str>) {
        const SORT: &'static str = "id";

        fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
            self.1.is_some_and(is_it)
        }

        fn key(&self, sort: &str) -> Option<SortKey<'_>> {
            match sort {
                "id" => Some(SortKey::Number(self.0.into())),
                "name" => Some(SortKey::text(self.1)),
                _ => None,
            }
        }
    }

    fn page(query: &[(&str, &str)]) -> (usize, usize, Vec<u32>) {
        let rows = [(1, Some("b")), (2, None), (3, Some("Ab")), (4, Some("b")), (5, Some("c"))];
        let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let params = PageParams::read(&Pairs(pairs.collect())).expect("a page");
        let page = paged(rows.into_iter(), &params, |row| row.0);
        (page.count, page.total_pages, page.results)
    }

    #[test]
    fn a_page_is_searched_sorted_and_cut() {
        assert_eq!(page(&[("page", "1")]), (5, 1, vec![1, 2, 3, 4, 5]));
        let two = ("page_size", "2");
        assert_eq!(page(&[("page", "2"), two]), (5, 3, vec![3, 4]));
        assert_eq!(page(&[("page", "9"), two]), (5, 3, vec![]));
        assert_eq!(page(&[("page", "x"), ("sort", "none"), two]), (5, 3, vec![1, 2]));
        let name = ("sort", "name");
        assert_eq!(page(&[("page", "1"), name]).2, [3, 1, 4, 5, 2]);
        assert_eq!(page(&[("page", "-1"), name, ("order", "desc")]).2, [2, 5, 1, 4, 3]);
        assert_eq!(page(&[("page", ""), ("search", " B ")]), (3, 1, vec![1, 3, 4]));
        assert_eq!(page(&[("page", "1"), ("page_size", "0")]), (5, 5, vec![1]));
        assert_eq!(page(&[("page", "9223372036854775807"), ("page_size", "1000")]).2, [0; 0]);
    }
}
