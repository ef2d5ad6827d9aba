"""Tools for authors. They run weekly or on demand; `make test` tries them on little."""
