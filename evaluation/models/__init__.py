"""What runs an embedding model, wherever it comes from, and keeps what it made of each text."""
