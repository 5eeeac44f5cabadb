"""A real instruct model on vLLM's CPU build: `make test-model MODEL=FOLDER`."""
