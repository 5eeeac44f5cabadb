"""Chat histories of any format: sessions in the order of their dates."""
