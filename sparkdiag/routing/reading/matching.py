"""``match`` as the ``if`` that it stands for. Pure."""

import ast

SUBJECT = "match subject"
"""A name that no source can use."""


def matching_test(case: ast.match_case, node: ast.Match) -> ast.expr:
    """The test under which a case is taken, over ``SUBJECT``."""
    test = ast.copy_location(_of(case.pattern), case.pattern)
    if case.guard is not None:
        test = ast.BoolOp(ast.And(), [test, case.guard])
    located = ast.copy_location(test, node.subject)
    located.lineno = case.pattern.lineno
    return ast.fix_missing_locations(located)


def _of(pattern: ast.pattern) -> ast.expr:
    subject = ast.Name(SUBJECT, ast.Load())
    match pattern:
        case ast.MatchValue():
            return ast.Compare(subject, [ast.Eq()], [pattern.value])
        case ast.MatchSingleton():
            return ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])
        case ast.MatchOr():
            return ast.BoolOp(ast.Or(), [_of(one) for one in pattern.patterns])
        case ast.MatchAs(pattern=None):
            return ast.Constant(True)
        case ast.MatchAs() if pattern.pattern is not None:
            return _of(pattern.pattern)
        case _:
            return ast.Compare(subject, [ast.Eq()], [ast.Name("__a_pattern_that_is_not_followed__", ast.Load())])
