"""What the site of the documentation is made by: MkDocs calls `hook`."""
