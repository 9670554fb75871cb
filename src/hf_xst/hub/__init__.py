"""On the Hub: cards, what may be published, pushing, pipelines."""
