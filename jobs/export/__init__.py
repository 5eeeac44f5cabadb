"""Export of a run's answers and tables to files of other programs: JSON lines, CSV, LaTeX; and of
the picture of scores against tokens read, which the page of a run has, too."""
