"""Trainers: supervised training of source models, and training of target models on charts."""
