"""The Parquet files of tables: written once, listed, indexed, and checked for damage."""
