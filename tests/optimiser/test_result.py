from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, minimize


def test_it_is_readable(network: KernelNetwork) -> None:
    result = minimize(
        lambda config: (config["x"] - 0.3) ** 2,
        {"x": Float(0, 1)},
        5,
        network=network,
        acquisition="logei",
        progress=False,
    )
    text = repr(result)
    assert text.startswith("Result: all 5 trials are done.")
    assert "5 done" in text
    assert f"{result.fun:.5g}: x={result.x['x']:.5g}" in text
    assert result.optimizer.recommend().text in text
    assert len(text.splitlines()) == 6
    assert "all 5 trials are done" in result._repr_html_()
