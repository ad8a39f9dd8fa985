"""What PTX instructions do: one table, and the steps that it turns a thread into."""
