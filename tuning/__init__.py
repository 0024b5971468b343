"""Plans, workloads, the rules by which a keeper carries a plan out, statistics. Imports `engine` and `store`."""
