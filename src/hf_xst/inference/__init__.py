"""Run models over streams of sentences: annotation, confidence, output formats and pipelines."""
