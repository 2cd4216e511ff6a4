"""Where samples come from: tables and their pictures, splits, random choices."""
