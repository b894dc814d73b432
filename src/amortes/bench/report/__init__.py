"""The report: statistics, figures, tables and one web page from the results of a sweep."""
