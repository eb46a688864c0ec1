"""The dashboard: captures looked at in a browser. Started by `wirewitness dashboard`.

The way of the data: a process of its own (`worker.py`) analyses a capture and leaves its tables as Parquet files in
the user's cache, under a key made of content (`jobs.py` follows and cancels it). `opened.py` answers SQL over these
files and is a `reports.base.questions.source.Source`, so views call the functions of `reports`, as the command line
does. What the dearest pages of a long capture ask at first sight, the worker asks ahead (`precomputed.py`): the answers
lie beside the tables (`answers.py`). Views hold no analysis. `packets.py` finds a message's bytes by what these tables
say, and only then reads the capture.

How to add a view

1. Queries: a function in `reports/`, from a `Source` to plain values, with `reports.base.questions.source.rows(source,
sql)`. Time
   range and protocols of the sidebar are options of the source and narrow the rows by themselves.
2. Charts: a pure function in `charts/`, from rows to an altair chart (`theme.py` there has colours and sizes, `axes.py`
   time axes). `with_pressed` and `pressed_in_chart` there show it and make its marks lead on, as all do.
3. The page: `views/NAME.py` with `def show(view: View) -> None`. `view.source` answers queries; `boxes.typed`,
   `boxes.choice` and so on are values that stand in the URL, `state.kept` is a chosen row there; `view.link(page, ...)`
   is the way to another page with such values. `paged_table` shows a query of any length, `grid` rows at hand; both
   tell the row that was just pressed, which opens what is behind it. Nothing to show is a sentence (`empty(...)`), not
   an error.
4. A line in `pages.py`. `needs` names the protocol without which the page is left out.

Rules

- Names and payloads are text from strangers. Show them with `text.py` (`card`, `facts`, `line` escape every value), in
  tables (`tables.py`), in `st.code`, or as options of `st.selectbox`. Functions of Streamlit that read Markdown
  (`st.markdown`, `st.write`, `st.caption`, labels of buttons, `help`) get constant text only; a test looks for others.
- Rows are filtered, sorted and paged by DuckDB; charts get bins, never raw rows of unknown number.
"""
