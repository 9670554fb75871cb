"""Training of source models, of target models on charts, and everything that runs models over sentences."""
