"""The language server. Only `server` imports pygls; what is answered is worked out in processes of their own."""
