//! The page itself.

use std::fmt::Write as _;

use super::Picture;

/// A table of the page.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The titles of the columns.
    pub header: Vec<String>,
    /// The cells; the first column holds words, the others numbers.
    pub rows: Vec<Vec<String>>,
}

/// Nothing is fetched: all that the page needs is in it.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#24292f;--ground:#fff;--faint:#d0d7de;--soft:#f6f8fa}
@media (prefers-color-scheme:dark){
:root{--ink:#d6dde4;--ground:#12161b;--faint:#3a424c;--soft:#1b2027}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);
max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}p{max-width:46rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
.wide{overflow-x:auto}th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap}
th{border-bottom:2px solid var(--faint)}td{border-bottom:1px solid var(--faint)}
th:first-child,td:first-child{
text-align:left;max-width:26rem;overflow:hidden;text-overflow:ellipsis}
tr:nth-child(even) td{background:var(--soft)}
figure{margin:.5rem 0}figcaption{font-size:13px}figure svg{max-width:100%;height:auto}
code{background:var(--soft);padding:.1rem .3rem;overflow-wrap:anywhere}
details{margin-top:2rem}summary{cursor:pointer}
@media print{body{max-width:none}}
";

/// One HTML page of a title, paragraphs, tables and pictures. It needs no network.
pub fn page(title: &str, notes: &[String], tables: &[Table], pictures: &[Picture]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(title)
    );
    for note in notes {
        push(&mut html, format_args!("<p>{}</p>\n", escaped(note)));
    }
    let (first, others) = tables.split_at(tables.len().min(1));
    for table in first {
        push_table(&mut html, table);
    }
    for picture in pictures {
        push(&mut html, format_args!("<h2>{}</h2>\n", escaped(&picture.title)));
        let note = escaped(&picture.note);
        let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(&picture.title));
        let svg = picture.svg.replacen("<svg ", &label, 1);
        push(&mut html, format_args!("<figure>\n{svg}<figcaption>{note}</figcaption></figure>\n"));
    }
    for table in others {
        push_table(&mut html, table);
    }
    html + "</body>\n</html>\n"
}

fn push_table(html: &mut String, table: &Table) {
    push(html, format_args!("<h2>{}</h2>\n<div class=\"wide\"><table>\n", escaped(&table.title)));
    push_row(html, "th", &table.header);
    for row in &table.rows {
        push_row(html, "td", row);
    }
    html.push_str("</table></div>\n");
}

fn push_row(html: &mut String, tag: &str, cells: &[String]) {
    html.push_str("<tr>");
    for cell in cells {
        push(html, format_args!("<{tag}>{}</{tag}>", escaped(cell)));
    }
    html.push_str("</tr>\n");
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    html.write_fmt(text).expect("a string takes every text");
}

/// Text that is nothing but text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fetches_nothing_and_shows_names_as_they_are() {
        let table = Table {
            title: "Policies".to_owned(),
            header: vec!["policy".to_owned()],
            rows: vec![vec!["{\"preset\":\"<b>\"}".to_owned()]],
        };
        let html = page("A & B", &["note".to_owned()], &[table], &[]);
        assert!(html.contains("<h1>A &amp; B</h1>") && html.contains("&lt;b&gt;"), "{html}");
        assert!(!html.contains("http") && !html.contains("src="), "{html}");
    }
}
