"""What a session's rows say of its candidates: pure, from rows and a decision to words."""
