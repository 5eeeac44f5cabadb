"""The tools that every format is read with: files and archives opened, rows checked, ids,
problems."""
