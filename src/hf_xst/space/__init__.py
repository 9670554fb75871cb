"""The method step by step in a browser: computation, pictures, the app, and its Space on the Hub."""
