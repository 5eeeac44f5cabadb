"""The `gistmill` command and the runs that it launches. A folder per task of a user.

config/     the frozen RunConfig, clusters, deadlines; options of reading verbs
output/     tables for terminals, Markdown, CSV; warnings of damaged files
graph/      words -> checked config -> steps -> phases, and the corpus's documents -> units
run/        gistmill run, retry, rate, score: execute the phases, one command at a time;
            progress, deadlines, compaction meanwhile
statistics/ means with intervals, paired tests
audit/      gistmill rate audit: how often raters are wrong, and means corrected for that
report/     gistmill report: the table of a run, costs of its rows
cite/       gistmill cite: the facts a paper must state
trace/      gistmill trace, show: one question or document as it was read
compare/    gistmill compare: methods paired on the same questions
plan/       gistmill plan: calls, hours and money before anything runs
people/     gistmill rate sheet, import, agreement: labels by people
submit/     gistmill submit: Ray Jobs, KubeRay, Slurm
html/       gistmill report html=FILE, view: the page of a run
export/     gistmill export: files for other programs, and the picture of scores against tokens
warehouse/  gistmill ls, status, schema, rm, gc, verify
api/        `import gistmill`
plugin/     gistmill plugin new: a user's folder of stages, metrics, engines ...
ask/        gistmill ask: a question to files, as a run; the passages that the answer rests on
cli/        one function per verb (sql, prompts and bench are here alone), exit codes; the entry
            points of cluster jobs

A run: `cli.execute_verbs` -> `graph.read_run` -> `run.launch`, which plans units by
`graph.preparation`, executes each of `graph.phases`, and checks the accounting.
Stages, tables and prompts are named only in YAML, not here.
"""
