"""JSON Schema for arguments: one plain form, coercion, a fast check, and errors in words. Used by `arguments`."""
