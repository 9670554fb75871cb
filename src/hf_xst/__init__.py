"""Parsers and taggers for languages without labelled data, from other people's trained models alone."""
