"""Pictures of graphs, drawn offline: one layout, written as text, SVG or PNG; and Mermaid."""
