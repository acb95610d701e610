"""Fills the docstrings of public functions from the texts that they share.

A line ``{keepdims}`` in a docstring stands for the text of that name, indented as the line is. Texts have such lines
too, so one can stand for all sections of a family. Parameters that the function lacks are left out.

``{TypeError}`` and its like say when the function's parameters raise that error; the rest of the line is a condition of
the function's own: ``{TypeError} ``ord`` is not a real number``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from .docstring_texts import CONDITIONS, PARAMETERS, TEXTS

Function = TypeVar("Function", bound=Callable[..., Any])
PLACEHOLDER = re.compile(r"\n( *)\{(\w+)\}(.*)")  # a line, and the end of the one before it
WIDTH = 112  # of a condition's line, which help() shows indented by 8


def documented(function: Function) -> Function:
    """Fill the placeholders in a function's docstring."""
    if function.__doc__:  # python -OO leaves none
        code, op = function.__code__, function.__name__
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        function.__doc__ = filled(function.__doc__, parameters).replace("{op}", op)
    return function


def filled(text: str, parameters: tuple[str, ...]) -> str:
    """A text with all placeholders but ``{op}`` filled, for a function with these parameters.

    >>> filled("Parameters:\\n{keepdims}\\n{initial}", ("a", "keepdims"))
    'Parameters:\\nkeepdims : bool, optional\\n    Keep the reduced axes, with length 1.'
    """
    return PLACEHOLDER.sub(lambda match: replacement(*match.groups(), parameters), text)


@cache
def replacement(indent: str, name: str, own: str, parameters: tuple[str, ...]) -> str:
    """The lines that stand for the line of a placeholder; none if they are about what the function lacks."""
    if name in CONDITIONS:
        text = raised(name, own.strip(), parameters)
    elif name in PARAMETERS:
        text = PARAMETERS[name] if PARAMETERS[name].split(" ", 1)[0].strip() in parameters else ""
    else:
        text = TEXTS[name]
    if "{" in text:
        text = filled(text, parameters)
    return text.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n") if indent else text


def raised(error: str, own: str, parameters: tuple[str, ...]) -> str:
    """When an error is raised: on the function's own conditions, and on those of its parameters."""
    found = [own] if own else []
    found += [text for names, text in CONDITIONS[error].items() if not {*names}.isdisjoint(parameters)]
    return "\n    ".join([f"\n{error}", *lines(f"If {'; if '.join(found)}.")]) if found else ""


def lines(text: str) -> Iterator[str]:
    """The lines of a paragraph. (textwrap.wrap takes fifty times as long.)"""
    while len(text) > WIDTH:
        line, _, _ = text[: WIDTH + 1].rpartition(" ")
        yield line
        text = text[len(line) + 1 :]
    yield text
