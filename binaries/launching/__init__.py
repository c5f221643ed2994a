"""Starting programs: many commands side by side."""
