"""Running models over streams of sentences: annotation, confidence and output formats."""
