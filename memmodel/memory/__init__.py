"""Memory as bytes: instances of variables, the bytes that an access touches, and the cells that these are cut into."""
