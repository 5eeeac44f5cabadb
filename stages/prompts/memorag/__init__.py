"""The prompts of MemoRAG (section 2), and of the rewriting baselines HyDE and RQ-RAG."""
