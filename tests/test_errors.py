from dataclasses import dataclass

import pytest

from amortes.errors import ConfigError, require_least


@dataclass
class Sizes:
    width: float
    depth: int = 2


def test_the_field_that_is_too_small_is_named() -> None:
    require_least(Sizes(1), width=1, depth=2)
    for width in (0, float("nan")):
        with pytest.raises(ConfigError, match=f"width: must be at least 1, not {width}"):
            require_least(Sizes(width), width=1, depth=2)
    with pytest.raises(ConfigError, match="depth: must be at least 3, not 2"):
        require_least(Sizes(1), width=1, depth=3)
