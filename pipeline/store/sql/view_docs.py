"""Descriptions of every warehouse's views and their columns, for `gistmill schema`.

Views that record classes bring are described by comments in their SQL.
"""

_CALLS = {
    "calls": "model calls, without those that were copied (`is_shared`)",
    "prompt_tokens": "tokens of the prompts, counted by the engine",
    "cached_tokens": "of the prompts' tokens, those that the engine had in its cache",
    "reply_tokens": "tokens of the replies, counted by the engine",
    "seconds": "the sum of the calls' seconds, which overlap",
}
_COUNTED = {
    "inputs": "documents or questions that the step was planned for",
    "ok": "of them, those with rows and no problem",
    "problem": "of them, those with a problem row",
    "skipped": "of them, those that the step does not apply to",
    "not_done": "of them, those that are not committed yet",
    "problems": "the problem codes, and how many inputs have each",
}
_RUN = {"run": "the run's name"}
_STEP = {
    "stage": "the stage that the step is of",
    "version": "of the stage; raised when its rows change meaning",
    "settings": "JSON: the stage's settings, which are hashed into `step_id`",
    "engine": "JSON: the identity of the engine that the stage asks",
    "prompts": "JSON: the hash of the template of each prompt that it asks",
    "upstream": "the steps whose rows it reads",
}
_VALUED = {
    "rater": "the rater that the value is of; null for values that need none",
    "problem": "the answer's problem code; its value counts as it stands here",
}

# View -> what a row is, and columns that mean something of their own there.
VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "accounting": ("A row per step of the run: what became of its inputs.", _COUNTED),
    "call_bytes": (
        "The compressed size of the table calls, of the whole warehouse.",
        {"bytes": "of all columns", "prompt_bytes": "of `messages`, what was sent"},
    ),
    "counts": (
        "Values that reports add up, per question.",
        {
            "rater": "the rater that the count is of; null for counts that need none",
            "counted": "what is counted: n, answered or unscored",
            "value": "1 or 0",
        },
    ),
    "footers": (
        "A row per key in the footer of a shard's file.",
        {
            "file_name": "the shard's path in the warehouse",
            "key": "the key, as bytes",
            "value": "the value, as bytes",
        },
    ),
    "inputs": (
        "A row per planned input of the run, a document or a question of a step.",
        {
            "question_id": "null where the input is a document",
            "not_done": "whether it is not committed yet",
            "has_rows": "whether its step's table has rows of it",
            "problem": "of its rows; where there are several, the first by name",
            "skipped": "whether the step does not apply to it",
        },
    ),
    "left_out": (
        "Damaged files that no view shows.",
        {"file": "its path", "why": "what is wrong with it"},
    ),
    "measures": (
        "Every value that a report takes a mean of, per question. Shares and metrics are 0-100.",
        {**_VALUED, "measure": "what is measured", "value": "the value; its unit is the measure's"},
    ),
    "memories": (
        "A row per memory, the pages of a pagination and all that is based on them.",
        {
            "documents": "documents of the corpus",
            "words": "their words",
            "calls": "model calls that made the memory, without copied ones",
            "tokens": "tokens of those calls' prompts and replies, counted by the engine",
        },
    ),
    "page_texts": (
        "What `gistmill show` prints: a row per page and text of it, and per text of several.",
        {
            "page_index": "of the page, or the first of several",
            "last_page_index": "the last page of a text of several; null: it is of one page",
            "place": "the text's position beside the others",
            "heading": "what the text is, as `gistmill show` heads it",
            "text": "the text; null: there is none",
            "num_words": "words of the text",
        },
    ),
    "people": (
        "A row per answer that a person labelled.",
        {
            **_RUN,
            "rater": "human:NAME",
            "answer_sha": "sha256 of the answer's text as it was then",
            "label": "yes, partially or no",
            "comment": "what the person wrote beside it",
        },
    ),
    "planned": ("A row per input that the run planned: a document or a question of a step.", _RUN),
    "rests_on": ("A row per method and memory that its rows refer to.", {}),
    "results": (
        "What methods reply to questions.",
        dict(
            answer="as the model gave it; null: none",
            answer_index="the option chosen",
            page_indexes="pages read, in document order",
            num_context_words="words in the final context",
        ),
    ),
    "runs": ("A row per step of the run: its accounting, and what it cost.", {
        **_RUN, **_COUNTED, **_CALLS, **_STEP}),
    "shards": ("A row per committed shard of the run.", {"table_name": "the table it is of"}),
    "sizes": (
        "The samples whose distributions `report --corpus` shows.",
        {
            "memory": "the memory that the sample is of; null for the corpus",
            "measure": "what is measured, with its unit",
            "rows_of": "what a row is of, in the plural",
            "place": "the measure's position in the report",
            "value": "the value",
        },
    ),
    "steps": ("A row per step of the run: what made its rows.", _STEP),
    "units": (
        "A row per input that the run planned, with when and by whom its unit was made.",
        {
            **_RUN,
            "started_at": "UTC; when the unit was begun; null where it is not committed",
            "worker": "host and process that made the unit",
        },
    ),
}  # fmt: skip
