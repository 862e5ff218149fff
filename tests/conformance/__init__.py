"""Differential tests: our behaviour against recorded behaviour of the reference, case by case.

`python -m tests.conformance [--data DIR] [PART...]` runs the parts; pytest runs the same cases one test each.

A part is a module `part_NAME.py` beside this file, its NAME listed in `case.PARTS`, with two functions:

    def cases(data: Path) -> Iterable[Case]   # reads DIR, yields nothing if DIR holds no data of this part
    def run(case: Case) -> Outcome            # synchronous; may raise, which counts as failed

`run` compares with every golden of the case and returns `Outcome.passed()` if one of them is met. Only else does
it look for a rule: a function of the case's *input* that says whether a rule of ours can touch it, giving
`Outcome.by_rule("A1")`. All else is `Outcome.failed("path: expected ..., got ...")`; `difference` helps there.
The names of the rules are those of the design (L loop, A arguments, W wire), and four more:
S1: OpenAI refuses a schema sent as strict that leaves an object open or a property optional; we send its closed form.
S2: a model of Anthropic that cannot think, asked to, keeps the limit of tokens and the temperature that were set.
S3: what a server says about when to ask again is heeded for Google, too.
S4: no reply at all is an error, not an empty answer, also from a server that is known to give no finish reason.

Nothing may depend on the name of a case: folders of unseen cases are run with `--data`.
"""
