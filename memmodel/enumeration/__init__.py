"""The enumeration engine: candidate executions one by one, and the plain evaluator that judges every witness."""

from memmodel.enumeration.answers import enumerate_answer, enumerate_outcomes
from memmodel.enumeration.choice import Choice, EventId
from memmodel.enumeration.estimate import estimate
from memmodel.enumeration.evaluate import Evaluation, evaluate
from memmodel.enumeration.execution import Execution
from memmodel.enumeration.finals import outcome_terms, spell
from memmodel.enumeration.replay import Replay, replay

__all__ = [
    "Choice",
    "Evaluation",
    "EventId",
    "Execution",
    "Replay",
    "enumerate_answer",
    "enumerate_outcomes",
    "estimate",
    "evaluate",
    "outcome_terms",
    "replay",
    "spell",
]
