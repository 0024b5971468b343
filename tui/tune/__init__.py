"""A plan and a session as the Tune screen shows them, without widgets."""
