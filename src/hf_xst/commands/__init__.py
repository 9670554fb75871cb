"""The commands of `hf-xst`, one module each, thin over the library."""
