"""What the Monitor shows, without widgets: the servers it watches, and what happens to them."""
