"""Runs of programs that use what a file cannot hold: functions, and choices that are objects.

They can be looked at without these, with texts in place of the objects; to go on with them takes
the program.
"""

from typing import Any


def readable(state: Any) -> tuple[Any, list[str]]:
    """A state that can be read without the program, and what it then lacks.

    What is no state at all is left to those who read it.
    """
    try:
        return _readable(state)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        return state, []


def _readable(state: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    space = dict(state["space"])
    lacks = ["a cost function"] if state["cost_function"] is True else []
    constraints = [c for c in space["constraints"] if "function" not in c]
    if len(constraints) < len(space["constraints"]):
        lacks.append("a constraint that is a function")
    objects = {name: p["objects"] for name, p in space["parameters"].items() if "objects" in p}
    if objects:
        lacks.append("choices that are objects")
    # Different objects may have one text.
    texts = {
        name: [text if some.count(text) == 1 else f"{text} ({i})" for i, text in enumerate(some)]
        for name, some in objects.items()
    }

    def named(config: dict[str, Any]) -> dict[str, Any]:
        return {k: texts[k][place] if k in texts else place for k, place in config.items()}

    space["constraints"] = constraints
    space["parameters"] = {
        name: {"type": p["type"], "choices": texts[name]} if name in texts else p
        for name, p in space["parameters"].items()
    }
    if "conditions" in space:
        space["conditions"] = {
            name: {**c, "values": [named({c["parent"]: v})[c["parent"]] for v in c["values"]]}
            for name, c in space["conditions"].items()
        }
    if space["pool"] is not None:
        space["pool"] = [named(config) for config in space["pool"]]
    trials = [{**trial, "config": named(trial["config"])} for trial in state["trials"]]
    queue = [named(config) for config in state["queue"]]
    return {**state, "space": space, "trials": trials, "queue": queue}, lacks
