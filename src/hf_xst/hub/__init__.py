"""Write cards, check what may be published, and push models and charts to the Hub."""
