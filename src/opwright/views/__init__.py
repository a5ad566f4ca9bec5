"""Models and graphs as pictures: one HTML page, or files of other viewers.

Lives here: `view` (view.py); graphs as values of JSON (graph_documents.py), what is said of operators
(operator_facts.py), models from files and objects (sources.py), figures by node (measurements.py), pairs of nodes
(correspondence.py), Model Explorer's format (model_explorer.py), the page's own scripts and style.
Not here: the skeleton of pages (pages/), reports as tables (tools/).
"""
