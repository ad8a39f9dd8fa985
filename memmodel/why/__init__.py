"""Why a test is answered as it is: the cycle that forbids an outcome, or what stops the order that would forbid it."""
