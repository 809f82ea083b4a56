"""Read a user's own tables, arrays and image folders."""
