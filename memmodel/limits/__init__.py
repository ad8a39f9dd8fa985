"""Time and memory of one answer: a second thread watches both and stops the work that has used them up.

In: Budget. Out: BudgetSpent, raised in the thread that does the work, wherever it stands. Settled here: work is not
trusted to look at the clock itself. Z3 is interrupted through its own call, by a signal too: Python runs the handler of
a signal when the call returns. Memory is what the process has gained since the work began, so that an answer does not
depend on what else the program holds.
"""

from memmodel.limits.garbage import collect_what_has_grown as collect_what_has_grown
from memmodel.limits.sharing import available as available
from memmodel.limits.sharing import counted as counted
from memmodel.limits.sharing import sharing_budget as sharing_budget
from memmodel.limits.sharing import within_budget as within_budget
from memmodel.limits.usage import default_memory as default_memory
from memmodel.limits.usage import hold_memory as hold_memory
from memmodel.limits.usage import shared as shared
from memmodel.limits.watching import Limits as Limits
from memmodel.limits.watching import effort as effort
from memmodel.limits.watching import outside as outside
from memmodel.limits.watching import reserve as reserve
from memmodel.limits.watching import settle as settle
