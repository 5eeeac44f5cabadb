#!/usr/bin/env bash
# Made warehouse_0_2.tar.gz by the code of commit b54ca124 with today's conf/prompts/generic/_question.jinja (a run is
# continued by the prompts that it was begun with alone), in /tmp/gistmill:
#   cd /tmp/gistmill && bash .../warehouse_0_2.sh && tar czf warehouse_0_2.tar.gz -C /tmp warehouse
w=/tmp/warehouse mill=/tmp/mill
gistmill() { python -m gistmill "$@" "warehouse=$w"; }
mkdir -p $mill/books
cat > $mill/books/mill.txt <<'END'
The miller kept the mill for thirty years. He was never late, and he never sold a sack short.

On the last day of May the sluice broke, and the baker waited two nights for his flour.
END
cat > $mill/books/questions.jsonl <<'END'
{"document_id": "mill", "question_id": "m1", "question": "Who waited for flour?", "references": ["The baker"]}
{"document_id": "mill", "question_id": "m2", "question": "What broke?", "references": ["The sluice"]}
END
cat > $mill/corrections.jsonl <<'END'
{"question_id": "m1", "references": ["The baker waited two nights"]}
{"question_id": "m2", "question": "What broke in May?"}
END

# A run that is compacted, beside one that is removed.
gistmill run corpus=demo run=demo cluster=inline rater=extractive 'methods=closed_book,bm25(top_k=1),readagent_p(max_pages=1)'
gistmill run corpus=demo run=removed cluster=inline rater=none limit=1 memory=uniform methods=gist_only
gistmill rm run=removed --yes
gistmill gc older_than=0s
# Runs that used what is gone: a family, corrections, an engine (no server answers).
gistmill run corpus=demo run=german cluster=inline rater=none family=german limit=1 memory=uniform 'methods=bm25(top_k=1)'
gistmill run corpus=text corpus.path=$mill/books corpus.corrections=$mill/corrections.jsonl run=corrected cluster=inline rater=none memory=uniform 'methods=bm25(top_k=1)'
gistmill run corpus=demo run=batch engine=batch engine.base_url=http://127.0.0.1:9/v1 engine.model=none engine.api_key_env=null cluster=inline rater=none limit=1 memory=uniform methods=closed_book
# A run that is killed when some of its answers are committed.
touch $mill/begun
python -m gistmill run experiment=demo run=half cluster=inline rater=none memory=uniform "warehouse=$w" &
until [ "$(find $w/tables/answers -newer $mill/begun -name '*.parquet' | wc -l)" -ge 8 ]; do sleep 0.1; done
kill -9 $!
