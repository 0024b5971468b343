"""The SQLite file: schema, migrations, one writer, typed records, queries. Imports nothing of ours."""
