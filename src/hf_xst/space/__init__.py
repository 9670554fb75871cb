"""The method step by step in a browser: its logic, its pictures, the app, and the Space on the Hub."""
