"""The commands of `hf-xst`, one module each, thin over the library.

Their functions take the options as a data class or, if decorated by `takes_options`, as keyword arguments.
"""
