"""The commands as functions: each takes a data class of `hf_xst.training.arguments`."""
