"""Speed and memory beside what people would use instead; each module is one command, see README.md."""
