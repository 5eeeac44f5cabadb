"""Requests of a run answered without gistmill, each way in processes of its own.

bare.py           the bare engine of gistmill's own, in dependency order
replayed.py       the files that a peer reads and writes
measured.py       a peer's command: its rates, and the CPU seconds of all its processes
offline.py        vLLM's LLM.generate on a list
ray_data_llm.py   ray.data.llm's vLLM processor
openai_server.py  vLLM's OpenAI server and an asyncio script
"""
