"""What instructions compute: functions from numbers to numbers."""
