"""What is asked of a kernel: a module, one of its entries, and a launch that is complete."""

from memmodel.kernel.question.asking import GivenLaunch as GivenLaunch
from memmodel.kernel.question.asking import KernelQuestion as KernelQuestion
from memmodel.kernel.question.asking import KernelText as KernelText
from memmodel.kernel.question.asking import kernel_text as kernel_text
from memmodel.kernel.question.asking import names_taken as names_taken
from memmodel.kernel.question.asking import question as question
from memmodel.kernel.question.requests import LaunchWords as LaunchWords
