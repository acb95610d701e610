"""Rewrites CUDA text into C++ that g++ compiles, line for line."""

from __future__ import annotations

import functools
import re

_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_SHARED = re.compile(
    r"(?P<prefix>(?:\b(?:extern|static)\s+)*)\b__shared__\s+(?P<declaration>[^;]+);"
)
_ALIGNMENT = re.compile(r"(?:\b__align__|\balignas)\s*\(((?:[^()]|\([^()]*\))*)\)")
_DECLARATOR = re.compile(
    r"(?P<type>.*?)\b(?P<name>\w+)\s*(?P<dimensions>(?:\[[^\]]*\]\s*)*)$", re.DOTALL
)
_ENTRY = re.compile(
    r'extern\s+"C"\s+__global__\s+(?P<head>[^{;]*?)\b(?P<name>(?!__launch_bounds__)\w+)\s*\((?![^{;]*__launch_bounds__)'
)
_PART = re.compile(r"^(?=#line )", re.MULTILINE)
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?P<threads>(?:[^(),]|\([^()]*\))*)")


def strip_comments(text: str) -> str:
    """The text without comments, every line where it was."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else " " + "\n" * found.count("\n")

    return _COMMENT.sub(blank, text)


def _split(declarators: str) -> list[str]:
    """The text cut at each comma that is in no brackets."""
    parts, depth = [""], 0
    for character in declarators:
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _declare_shared(match: re.Match[str]) -> str:
    """``__shared__ T x[4];`` as a reference to memory that the runtime hands out and knows."""
    declaration = match["declaration"]
    alignments = _ALIGNMENT.findall(declaration)
    kind, code = "", []
    for part in _split(_ALIGNMENT.sub("", declaration)):
        declarator = _DECLARATOR.match(part.strip())
        if declarator is None:
            return match.group()  # g++ reports the line
        kind = kind or " ".join(declarator["type"].split())
        name, dimensions = declarator["name"], declarator["dimensions"]
        if "extern" in match["prefix"]:
            memory = "emulator_dynamic_shared"
        else:
            alignment = "".join(f" > ({a}) ? alignof({kind}) : ({a})" for a in alignments[:1])
            slot = f"emulator_slot_{name}"
            layout = f"sizeof({kind} {dimensions}), alignof({kind}){alignment}"
            code.append(f'static emulator_shared_slot {slot} = {{"{name}", {layout}, 0, nullptr}};')
            memory = f"emulator_shared(&{slot})"
        code.append(
            f"{kind} (&{name}){dimensions} = *reinterpret_cast<{kind} (*){dimensions}>({memory});"
        )
    lines = match.group().count("\n") - "".join(code).count("\n")
    return " ".join(code) + "\n" * lines


@functools.cache
def _translate_part(text: str, depth: int) -> tuple[str, dict[str, str], int]:
    """C++ for a part of a text, its kernels with their bounds, and how many braces are open after it."""
    text = strip_comments(text)
    for found in _SHARED.finditer(text):
        before = text[: found.start()]
        if "extern" not in found["prefix"] and depth + before.count("{") == before.count("}"):
            raise ValueError(
                f"{found.group()!r}: __shared__ variables outside a function are not emulated"
            )
    kernels = {}
    for entry in _ENTRY.finditer(text):
        bounds = _BOUNDS.search(entry["head"])
        kernels[entry["name"]] = bounds["threads"] if bounds else "1024"
    depth += text.count("{") - text.count("}")
    return _SHARED.sub(_declare_shared, text), kernels, depth


def translate(text: str, name: str) -> tuple[str, list[str]]:
    """C++ for the text of a CUDA translation unit, and the names of its kernels."""
    depth, code, kernels = 0, "", {}
    for part in _PART.split(text):  # most of them are files that other units have too
        translated, found, depth = _translate_part(part, depth)
        code += translated
        kernels.update(found)
    launchers = "".join(
        f"EMULATOR_KERNEL({kernel}, {threads})\n" for kernel, threads in kernels.items()
    )
    return f'#line 1 "{name}"\n{code}\n#line 1 "launchers"\n{launchers}', list(kernels)


def source_line(text: str, file: str, line: int, name: str) -> str | None:
    """The text of ``file:line``, where the ``#line`` directives put it."""
    here, number = name, 0
    for content in text.splitlines():
        number += 1
        directive = re.match(r'\s*#\s*line\s+(\d+)(?:\s+"([^"]*)")?', content)
        if directive:
            here, number = directive[2] or here, int(directive[1]) - 1
        elif (here, number) == (file, line):
            return content.strip()
    return None
