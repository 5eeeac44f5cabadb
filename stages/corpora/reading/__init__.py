"""The base class of corpora, and the tools that formats are read with: files and archives opened,
rows checked, ids, problems."""
