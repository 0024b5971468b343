"""A session as a document to hand on: content once, then Markdown, HTML, JSON and CSV of it."""
