"""The configuration: words are taken as written, and a mistake is one line that says what to do."""

import copy
import json
import re
from pathlib import Path

import pytest

from jobs.graph.resolved_run import read_run, run_of
from pipeline.core.errors import UsageError
from pipeline.core.settings import CONF
from pipeline.work.stage import Role

SERVED = ("engine=openai", "engine.base_url=http://h/v1", "engine.model=m")
PLAIN = [
    "My Books (2024)", "a=b", "1e5", "007", "true", "None", "it's", '"quoted"', "\\", "C:\\books\\",
    "a\\'b", "${x}", "\\${x}", "${oc.env:HOME}", "{a: b}", "[a, b]", "a: b", "# no comment",
    " blank ", "~/books", "bücher/中文", "two\nlines",
]  # fmt: skip


def complaint(*words: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_run(words)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("value", PLAIN)
def test_paths_are_taken_as_written(value: str) -> None:
    words = [f"{key}={value}" for key in ("corpus.path", "warehouse")]
    dumped = read_run(words).config.model_dump(mode="json")
    assert (dumped["corpus"]["path"], dumped["warehouse"]) == (value, value)


def test_every_role_is_the_reader_s_unless_it_is_chosen(tmp_path: Path) -> None:
    script = tmp_path / "it's a [script].yaml"
    script.write_text("replies: []\n")
    config = read_run(["engine.seed=7"]).config
    roles: tuple[Role, ...] = ("memory", "extractor", "query_expander", "judge")
    assert all(config.engines(role) == [config.engine] for role in roles)
    config = read_run(
        ["extractor=scripted", f"extractor.script={script}", "extractor.sequences=3", "rater=none",
         "memory_engine=vllm", "memory_engine.model=some/model", "memory_engine.args.foo=1"]
    ).config  # fmt: skip
    names = [[engine.name for engine in config.engines(role)] for role in ("reader", *roles)]
    assert names == [["extractive"], ["vllm"], ["scripted"], ["extractive"], []]
    dumped = config.model_dump(mode="json")
    extractor, memory_engine = dumped["extractor"], dumped["memory_engine"]
    assert (extractor["script"], extractor["sequences"]) == (str(script), 3)
    assert (memory_engine["model"], memory_engine["args"]) == ("some/model", {"foo": 1})


@pytest.mark.parametrize(
    ("words", "key", "advice"),
    [
        (["limt=3"], "limt", "nearest: limit"),
        ([*SERVED, "engine.price.input=0.15"], "engine.price", "set both input and output"),
        ([*SERVED, "engine.price.cached_input=1"], "engine.price", "set both input and output"),
        ([*SERVED, "engine.price.inptu=1"], "engine.price.inptu", "nearest: engine.price.input"),
        ([*SERVED, "engine.price.cached_input=-1"], "engine.price.cached_input=-1", "0"),
        (["engine.max_workers=0"], "engine.max_workers=0", "greater than 0"),
        (["rater.seed=3"], "rater.seed", "rater.name"),
        (["hydra.run.dir=x"], "hydra.run.dir", "no such key"),
        (["corpus=nosuch"], "corpus=nosuch", "one of csv, demo, infinitebench"),
        (["corpus.path=null"], "corpus.path=None", "path"),
        (["corpus=qmsum"], "corpus.path", "add corpus.path=..."),
        (["novalue"], "'novalue'", "write key=value"),
        (["+limit=3"], "'+limit=3'", "write key=value"),
        (["warehouse="], "warehouse", "leave it out"),
        (["limit=[1"], "limit=[1", "quotes"),
        (["limit=${nope}"], "nope", "not found"),
        (["limit=0"], "limit=0", "greater than 0"),
        (["max_problem_rate=5"], "max_problem_rate=5", "less than or equal to 1"),
        (["limit=2", "sample=2"], "limit and sample", "set one of them to null"),
        (["repeats=2"], "repeats=2", "or repeats=1"),
        (["family=nosuch"], "family=nosuch", "there are chats, generic"),
        (["memory.min_words=700"], "memory", "lower it"),
        (["engine=scripted", "engine.script=no.yaml"], "no.yaml: cannot be read", "No such file"),
        (["methods=nosuch"], "'nosuch'", "there are bm25"),
        (["memory_engine=gpt"], "memory_engine=gpt: ", "one of extractive"),
        (["extractor=scripted"], "extractor.script is not set", "add"),
        (["extractor=extractive", "extractor.seed=x"], "extractor.seed=x: ", "valid integer"),
        (["cluster.name=cloud"], "cluster: Input tag 'cloud'", "'inline', 'local', 'ray'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_saying_what_to_do(words: list[str], key: str, advice: str) -> None:
    line = complaint(*words)
    assert key in line
    assert advice in line


def test_a_config_takes_no_key_it_does_not_know() -> None:
    resolved = read_run([])
    known = resolved.config.model_dump(mode="json")
    assert run_of(known) == resolved
    for section in ("", "corpus", "memory", "engine", "cluster"):
        odd = copy.deepcopy(known)
        (odd[section] if section else odd)["temprature"] = 1
        with pytest.raises(UsageError, match="temprature"):
            run_of(odd)


@pytest.mark.parametrize("corpus", sorted(f.stem for f in (CONF / "corpus").glob("*.yaml")))
def test_every_corpus_is_read_again_as_it_was_stored(corpus: str) -> None:
    where = "corpus.seed=7" if corpus == "synthetic" else "corpus.path=My Books"
    resolved = read_run([f"corpus={corpus}", where, "family=generic"])
    stored = json.loads(json.dumps(resolved.config.model_dump(mode="json")))
    assert run_of(stored) == resolved
    assert str(stored["corpus"][where[7:11]]) == where.partition("=")[2]


def name_of(*words: str) -> str:
    return read_run(words).name


@pytest.mark.slow
def test_the_same_command_is_the_same_run_and_another_is_another() -> None:
    assert name_of("experiment=demo", "limit=2") == name_of("limit=2", "experiment=demo")
    assert name_of("methods=bm25") == name_of("methods=bm25(top_k=3)")
    for word in ("warehouse=elsewhere", "engine.max_workers=1", "engine.deadline_seconds=5.0",
                 "engine.sequences=9", "max_problem_rate=0.5"):  # fmt: skip
        assert name_of(word) == name_of(), word
    words = ["limit=2", "sample=2", "methods=bm25", "corpus.path=elsewhere", "corpus.seed=1",
             "memory=uniform", "engine.context_tokens=999", "rater=none", "family=quality",
             "corpus.name=other", "corpus.paragraphs=lines", "engine.seed=7"]  # fmt: skip
    assert len({name_of(), *(name_of(word) for word in words)}) == 1 + len(words)


def test_a_run_is_named_after_experiment_or_corpus() -> None:
    assert name_of("run=night-2_a") == "night-2_a"
    for wrong in ("7", "Night", "-a", "a b", "../a", "ä", "a.b"):
        assert complaint(f"run={wrong}").startswith(f"run={wrong}: ")
    assert name_of("corpus=text", "corpus.path=x").startswith("text-")
    assert name_of("corpus.name=My Books (2024)").startswith("my-books-2024-")
    assert name_of("experiment=qmsum", "corpus.path=x").startswith("qmsum-")
    assert re.fullmatch(r"demo-[0-9a-f]{8}", name_of())
