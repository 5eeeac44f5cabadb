"""File operations, local or on an object store: retried, and every file is written whole or not at
all; hashes of model folders, and names of processes for files."""
