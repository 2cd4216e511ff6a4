"""Console commands beside `smmd`."""
