"""Self-contained HTML pages: the one style, the skeleton with its policy, tables, charts.

Lives here: `escape` and `page` (markup.py), tables and bars (tables.py), charts (charts.py, charts.js), style.css;
vendor/ has scripts of other projects with their licences, which `make vendor` writes.
Not here: what a page shows (tools/, views/), which imports this. Nothing here imports the rest of the package.
"""
