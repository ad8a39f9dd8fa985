"""PTX text → `PtxModule`."""
