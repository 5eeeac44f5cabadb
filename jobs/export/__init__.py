"""Export of a run's answers and tables to files of other programs: JSON lines, CSV, LaTeX."""
