"""What the Monitor's panels say: pure functions from a Window to rows of text."""
