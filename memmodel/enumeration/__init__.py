"""The enumeration engine: candidate executions one by one."""
