"""What limits a server, in one sentence with its evidence."""
