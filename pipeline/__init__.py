"""The pipeline's machinery: rows, steps, units, engines, store, Ray. Independent of the stages.

A run passes through these folders from the bottom up; each imports only from those above its line:

core/       rows, prompts, calls, the interface of an engine, errors, settings, registries
files/      files on this machine or an object store, every operation retried
families/   prompt families: templates and settings, inherited from `generic`
engines/    extractive, vllm/, openai, scripted: a request -> a reply
asking/     a prompt -> a request, a recorded call, a parsed value or a problem
work/       stages and methods -> steps (how) -> units (on what): the work to do
store/      shards/  a unit's rows -> one Parquet file, the first commit wins
            runs/    a run's planned units, manifest, progress, and labels of people
            sql/     committed files -> DuckDB views
            upkeep   compaction, retention, removal, under leases
worker/     one process: executes a document's units, commits them, sends heartbeats
cluster/    Ray: workers as an actor pool, documents dealt to them, jobs

One document in one execution: `cluster.ray_data` deals it to a worker, `worker.worker` loads the
committed rows, `worker.executor` runs the stages of pending units, each `await ask(prompt)` passes
`asking.ask` to an engine, and `store.shards` commits the calls, then the rows.
"""
