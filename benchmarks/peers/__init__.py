"""Requests of a run answered without gistmill, each way in its own processes.

bare.py           gistmill's engine alone, in dependency order
replayed.py       the files that a peer reads and writes
measured.py       a peer's command: its rates, and the CPU seconds of all its processes
offline.py        vLLM's LLM.generate on a list
ray_data_llm.py   ray.data.llm's vLLM processor
openai_server.py  vLLM's OpenAI server and an asyncio script
"""
