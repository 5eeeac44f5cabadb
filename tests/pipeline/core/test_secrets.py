"""Secrets in words and YAML: refused in one line that does not repeat them, and never stored."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.graph.read_run import read_run
from pipeline.core.compose import compose
from pipeline.core.errors import DamagedError, LeftOutWarning, UsageError
from pipeline.core.redaction import redacted, remember_key
from pipeline.core.secrets import refuse_secret, refuse_secrets
from pipeline.engines.openai_client import FailedError
from tests.support.command import refused
from tests.support.runs.warehouse import Warehouse, answer, chunk, step

SECRET = "0p3nSesame"
OPENAI = ("engine=openai", "engine.model=m", "engine.base_url=http://127.0.0.1:1/v1")
VLLM = ("engine=vllm", "engine.model=Qwen/Qwen3-0.6B")
KUBERAY = ("cluster=kuberay", "cluster.image=i")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHT_SECRET", SECRET)


def complaint(*words: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_run(["experiment=demo", *words])
    line = str(caught.value)
    assert SECRET not in line and "\n" not in line
    return line


RESOLVED = [
    "experiment=${oc.env:NIGHT_SECRET}",
    "corpus=${oc.env:NIGHT_SECRET}",
    "engine=${oc.env:NIGHT_SECRET}",
    "rater=${oc.env:NIGHT_SECRET}",
    "cluster.deadline=${oc.env:NIGHT_SECRET}",
    "corpus.seed=${oc.env:NIGHT_SECRET}",
    "limit=${oc.decode:${oc.env:NIGHT_SECRET}}",
    "engine.args.user=${oc.env:NIGHT_SECRET}",
    "engine.args.user='a ${oc.env:NIGHT_SECRET,none} b'",
    "engine.args={user: '${oc.env:NIGHT_SECRET}'}",
    "engine.args.user='${oc.${.a}:NIGHT_SECRET}'",
    "engine.args.day=${now:%Y}",
    "engine.args.python=${python_version:micro}",
    "engine.args.a=${oc.create:{a: 1}}",
    "engine.args.folder=${hydra:runtime.cwd}",
]


@pytest.mark.parametrize("word", RESOLVED)
def test_nothing_but_other_keys_is_interpolated(word: str) -> None:
    line = complaint(*([] if word.startswith("engine=") else OPENAI), word)
    assert word.partition("=")[0] in line


def test_an_interpolation_in_a_plugins_yaml_names_its_key(tmp_path: Path) -> None:
    folder = tmp_path / "own_night" / "conf" / "experiment"
    folder.mkdir(parents=True)
    (folder / "night.yaml").write_text(
        "# @package _global_\nengine:\n  seed: ${oc.env:NIGHT_SECRET}\n"
    )
    (folder / "choice.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /corpus: ${oc.env:NIGHT_SECRET}\n"
    )
    plugins = f"plugins={tmp_path / 'own_night'}"
    assert complaint(plugins, "experiment=night").startswith("engine.seed: ")
    assert "oc.env" in complaint(plugins, "experiment=choice")


def test_other_keys_are_interpolated() -> None:
    words = ("experiment=demo", "engine.seed=7", "corpus.seed=${engine.seed}")
    assert compose(words)["corpus"]["seed"] == 7


def test_the_resolvers_of_a_program_that_calls_us_are_left_to_it() -> None:
    from omegaconf import OmegaConf

    compose(["experiment=demo"])
    made = OmegaConf.create({"a": "${oc.env:NIGHT_SECRET}"})
    assert made.a == SECRET


NAMED = [
    (OPENAI, "engine.args.extra_headers.Authorization"),
    (OPENAI, "engine.args.api_key"),
    (OPENAI, "engine.args.apiKey"),
    (OPENAI, "engine.args.extra_headers"),
    (OPENAI, "engine.args.a.b.client_secret"),
    (OPENAI, "engine.args.password"),
    (OPENAI, "engine.args.access_token"),
    (OPENAI, "engine.chat_template_kwargs.token"),
    (VLLM, "engine.args.hf_token"),
    (VLLM, "engine.chat_template_kwargs.API-KEY"),
    (KUBERAY, "cluster.runtime_env.env_vars.HF_TOKEN"),
    (KUBERAY, "cluster.runtime_env.env_vars.AWS_SECRET_ACCESS_KEY"),
    (("rater=openai",), "rater.args.api_key"),
    (OPENAI, "engine.args.auth"),
    (OPENAI, "engine.args.pass"),
    (OPENAI, "engine.args.pw"),
    (OPENAI, "engine.args.user_key"),
    (OPENAI, "engine.args.pat"),
    (OPENAI, "engine.args.extra_query.code"),
    (OPENAI, "engine.args.extra_query"),
]


@pytest.mark.parametrize(("words", "key"), NAMED)
def test_a_key_that_is_named_like_a_secret(words: tuple[str, ...], key: str) -> None:
    assert complaint(*words, f"{key}={SECRET}").startswith(f"{key}: ")


def test_a_secret_inside_a_value_is_found() -> None:
    line = complaint(*OPENAI, f"engine.args={{a: [{{api_key: {SECRET}}}]}}")
    assert line.startswith("engine.args.a.0.api_key: ") and "api_key_env" in line
    line = complaint("cluster=slurm", f"cluster.setup=['export HF_TOKEN={SECRET}']")
    assert line.startswith("cluster.setup")


PASSWORDS = [
    "warehouse=s3://key:0p3nSesame@bucket/w",
    "corpus.path=https://me:0p3nSesame@host/corpus",
    "corpus.path=simplecache::ftp://me:0p3nSesame@host/corpus",
    "corpus.path=https://host/corpus?X-Amz-Signature=0p3nSesame",
    "corpus.path=https://host/corpus?a=b&token=0p3nSesame",
    "engine.base_url=https://me:0p3nSesame@host/v1",
    "engine.base_url=https://host/v1?key=0p3nSesame",
    "engine.base_url=https://host/sk-0p3nSesame0p3nSesame/v1",
    "engine.base_url=https://host/abc0p3nSesame0123456789def/v1",
    "engine.base_url=https://host/0b5ea111-0aec-4e1b-9f0e-0123456789ab/v1",
    "engine.args.proxy=http://0p3nSesame@proxy:3128",
    "corpus.path=https://host/corpus#access_token=0p3nSesame",
    "plugins=https://me:0p3nSesame@host",
    "warehouse=ssh://me:a/0p3nSesame@host",
    "engine.args.proxy=http://me:0p3nSesame@proxy:3128",
    "engine.model=sk-0p3nSesame0p3nSesame",
    "engine.args.user='Bearer 0p3nSesame0p3nSesame'",
    "cluster.address=http://me:0p3nSesame@head:8265",
]


@pytest.mark.parametrize("word", PASSWORDS)
def test_a_value_that_holds_a_password_is_not_repeated(word: str) -> None:
    assert complaint(*OPENAI, word).startswith(word.partition("=")[0])


@pytest.mark.parametrize("word", [*PASSWORDS[:1], PASSWORDS[-1]])
def test_reading_verbs_refuse_them_too(word: str) -> None:
    key, _, value = word.partition("=")
    for written in ([word], [f"--{word}"], [f"--{key}", value]):
        told = refused("status", *written)
        assert told.startswith(key) and SECRET not in told


HARMLESS = [
    *(f"engine.args.{key}" for key in (
        "max_num_batched_tokens", "long_prefill_token_threshold", "tokenizer", "stop_token_ids",
        "skip_special_tokens", "prompt_cache_key", "eos_token", "prefix_caching_hash_algo",
        "logits_processors", "max_tokens_per_image",
    )),
    "engine.chat_template_kwargs.enable_thinking",
    "engine.chat_template_kwargs.keep_tokens",
]  # fmt: skip


def test_names_that_only_sound_like_it_are_kept() -> None:
    compose([*VLLM, *(f"{key}=1" for key in HARMLESS)])
    for word in (
        "engine.base_url=https://api.example.com/v1/projects/my-project-123456/llama-3-1-70b/v1",
        "engine.base_url=http://127.0.0.1:8000/v1",
        "corpus.path=hf://datasets/owner/name@main/data",
        "corpus.path=abfs://container@account.dfs.core.windows.net/corpus",
        "warehouse=s3://bucket/a:b@c",
        "cluster.address=http://head:8265",
        "engine.api_key_env=MY_API_KEY",
        "corpus.path=/data/sk-learn-datasets-2024/hf_datasets_cache_of_2024",
        "engine.args.user='Bearer of bad news'",
    ):
        refuse_secret(word)
        key, _, value = word.partition("=")
        section, _, name = key.partition(".")
        refuse_secrets({section: {name: value}} if name else {key: value})
    of_sql = "where=title = 'http://h/?token=1'"
    assert "no run there" in refused("report", of_sql, "by=title", "warehouse=/nowhere")
    compose([*KUBERAY, "cluster.secret=s3-keys"])
    compose(["cluster=slurm", "cluster.setup=['export HF_TOKEN=$MY_TOKEN']"])


def test_what_is_for_rays_job_alone_is_not_stored(tmp_path: Path) -> None:
    from jobs.graph.manifest import run_manifest

    words = ("cluster=ray", "cluster.address=auto",
             f"cluster.runtime_env.env_vars.HF_TOKEN={SECRET}")  # fmt: skip
    resolved = read_run(["experiment=demo", *words])
    assert SECRET not in str(run_manifest(resolved))


@pytest.mark.parametrize(
    "word",
    ["hydra.run.dir=/tmp/x", "hydra={}", "hydra/launcher=x", "+hydra.a=1", "~engine",
     "engine.args._target_=os.system"],
)  # fmt: skip
def test_hydras_own_keys_are_refused(word: str) -> None:
    assert "\n" not in complaint(*OPENAI, word)


def test_lines_are_printed_without_passwords() -> None:
    line = "no answer from http://me:0p3nSesame@proxy:3128/x and s3://k:v@b; a:b@c stays"
    assert redacted(line) == (
        "no answer from http://me:***@proxy:3128/x and s3://k:***@b; a:b@c stays"
    )
    assert redacted("ssh://me:a/b@h http://tok@h http://h:80/v1@2") == (
        "ssh://me:***@h http://***@h http://h:80/v1@2"
    )


LINES = [
    ("Illegal header value b'Bearer {key}\\n'", "Illegal header value b'Bearer ***\\n'"),
    ("no credit on {key}.", "no credit on ***."),
    ("Incorrect API key provided: {head}***x.", "Incorrect API key provided: ***"),
    ("key (ending in ...{tail}) is used up", "key (ending in ***) is used up"),
    ("the key {head}...{tail}, say", "the key ***, say"),
    ("nothing of it", "nothing of it"),
]


@pytest.mark.parametrize(("line", "shown"), LINES)
def test_a_known_key_is_hidden_whole_and_by_its_ends(line: str, shown: str) -> None:
    key = "sk-hidden-0123456789abcdef"
    assert remember_key(f" {key}\r\n") == key
    assert redacted(line.format(key=key, head=key[:6], tail=key[-6:])) == shown


def test_a_short_key_is_hidden_whole_alone() -> None:
    assert remember_key("q7\n") == "q7"
    assert redacted("q7 of q70, said q") == "*** of ***0, said q"
    assert remember_key(" \n") == ""
    assert redacted("a b") == "a b"


def test_rows_and_errors_hide_it_too(tmp_path: Path) -> None:
    key = remember_key("sk-in-a-row-0123456789")
    answers = step("answers", "full_text")
    unit = chunk(answers, "d1", "q1")
    row = replace(answer(), problem="unit_failed", detail=f"ValueError: bad header {key}")
    shard = Warehouse(tmp_path).commit(answers, unit, [row])
    assert pq.read_table(str(shard))["detail"].to_pylist() == ["ValueError: bad header ***"]
    for error in (
        UsageError(f"a {key}", (key,)),
        DamagedError("f", key),
        FailedError(key),
    ):
        assert key not in f"{error} {getattr(error, 'hints', '')}"


def test_white_space_around_a_key_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-white-0123456789\n")
    with pytest.warns(LeftOutWarning, match="^white space around the key in OPENAI_API_KEY$"):
        read_run(["experiment=demo", *OPENAI])


def test_the_key_itself_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for word in (f"engine.base_url=http://h/{SECRET}/v1", f"engine.args.user={SECRET}",
                 f"warehouse=w-{SECRET}"):  # fmt: skip
        assert complaint(*OPENAI, word).startswith(word.partition("=")[0])
