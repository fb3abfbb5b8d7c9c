"""When two numbers are the same: takes the place of math-verify's own numeric rule, which rounds to six decimals and 15 digits.

math-verify 0.9.0 takes 1/3^60 for 1/3^59 and 0.0000001 for 0.0000003. [OURS] Exact numbers are compared exactly; where a decimal is in
play, the two agree if they differ by at most half a unit of the sixth decimal and by at most 1e-5 of their size (0.166667 is 1/6,
0.0000003 is not 1e-7). A percentage stands for itself and for a hundredth of it, as in math-verify.
"""

from __future__ import annotations

from math_verify import grader
from math_verify.grader import get_pct_val, safe_sympy_doit
from sympy import Expr, Float, MatrixExpr, Rational

_DIGITS, _ABSOLUTE, _RELATIVE = 60, Rational(1, 2_000_000), Rational(1, 100_000)
_originals = grader.sympy_numeric_eq, grader.sympy_symbolic_eq


def install() -> None:
    """Makes math-verify, in this process, compare numbers (also those inside tuples, sets, intervals and matrices) by our rule."""
    grader.sympy_numeric_eq, grader.sympy_symbolic_eq = numeric_eq, symbolic_eq


def numeric_eq(a, b, float_rounding: int, numeric_precision: int) -> bool:
    """Drop-in for `math_verify.grader.sympy_numeric_eq`; anything but two real numbers goes to the original."""
    if _real(a) and _real(b):
        return same(a, b)
    return _originals[0](a, b, float_rounding, numeric_precision)


def symbolic_eq(a, b) -> bool:
    """Drop-in for `math_verify.grader.sympy_symbolic_eq`: of real numbers `numeric_eq` has said all there is to say."""
    return not (_real(a) and _real(b)) and _originals[1](a, b)


def same(a: Expr, b: Expr) -> bool:
    """Whether two real numbers are equal in the sense of the module."""
    exact = not (a.has(Float) or b.has(Float))
    return any(_close(x, y, exact) for x in _values(a) for y in _values(b))


def _real(value) -> bool:
    return isinstance(value, Expr) and not isinstance(value, MatrixExpr) and value.is_number and value.is_extended_real is True


def _values(number: Expr) -> list[Expr]:
    """The exact value; of a percentage also its hundredfold."""
    percent = get_pct_val(number)
    return [_exact(number)] if percent is None else [_exact(percent), _exact(percent) / 100]


def _exact(number: Expr) -> Expr:
    """Evaluated, each decimal as the fraction that it is written as."""
    return safe_sympy_doit(number.xreplace({decimal: Rational(str(decimal)) for decimal in number.atoms(Float)}))


def _close(x: Expr, y: Expr, exact: bool) -> bool:
    if x == y:
        return True
    if x.is_infinite or y.is_infinite:
        return False
    if exact and x.is_Rational and y.is_Rational:
        return False
    x, y = x.evalf(_DIGITS), y.evalf(_DIGITS)
    difference, size = abs(x - y), max(abs(x), abs(y))
    if exact:
        return bool(difference <= size * Rational(1, 10 ** (_DIGITS - 10)))
    return bool(difference <= _ABSOLUTE and difference <= size * _RELATIVE)
