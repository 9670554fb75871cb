"""Source models: loading, pooling, agreement, weight averaging, and making charts with them."""
