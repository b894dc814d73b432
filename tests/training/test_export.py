import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.gains.gain_network import GainConfig
from amortes.nets.kernel.hyperparameters.encoder import EncoderConfig
from amortes.training.export import adjust, export, load_network
from amortes.training.learner import Learner
from amortes.training.loop import train
from amortes.training.recipes import STAGES, build_network, recipe
from amortes.training.run import Progress, TrainingRun
from amortes.training.tensorfile import read_tensors, write_tensors
from tests.training.fake import PRIOR, FakeNetwork, export_untrained, fake_recipe

Runs = tuple[TrainingRun, TrainingRun]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "base", fake_recipe(steps=3))
    train(folder / "alpha", fake_recipe("alpha", steps=2, seed=5), base=folder / "base")
    return TrainingRun.open(folder / "base"), TrainingRun.open(folder / "alpha")


@pytest.fixture(scope="module")
def exported(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "network.safetensors"
    export(runs[1], path, {"excess": 0.5})
    return path


def test_round_trip(runs: Runs, exported: Path) -> None:
    network, _ = load_network(exported)
    assert isinstance(network, FakeNetwork)
    assert network.config == fake_recipe().config
    assert network.prior == fake_recipe().prior
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    weights, _ = runs[1].weights()
    assert weights.keys() == network.state_dict().keys()
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_card_tells_all(exported: Path) -> None:
    _, card = load_network(exported)
    assert card.network == "fake"
    assert card.prior["name"] == "tiny"
    assert card.scores == {"excess": 0.5}
    assert card.licence == "MIT"
    assert card.parameters == sum(p.numel() for p in load_network(exported)[0].parameters())
    assert {name: stage["step"] for name, stage in card.stages.items()} == {"base": 3, "alpha": 2}
    assert card.stages["alpha"]["recipe"]["seed"] == 5
    assert card.stages["base"]["recipe"]["stage"] == "base"
    json.dumps(dataclasses.asdict(card))


def test_settings_without_weights_may_change(runs: Runs, tmp_path: Path) -> None:
    card = export(runs[1], tmp_path / "f", overrides=["effort=5"])
    assert card.config["effort"] == 5
    assert card.stages["alpha"]["recipe"]["config"]["effort"] == 1
    assert load_network(tmp_path / "f")[0].config.effort == 5
    with pytest.raises(FileError, match="do not fit its recipe with these settings"):
        export(runs[1], tmp_path / "g", overrides=["width=7"])


def test_a_file_with_other_settings_or_scores(exported: Path, tmp_path: Path) -> None:
    network, card = load_network(exported)
    more = adjust(exported, tmp_path / "f", overrides=["effort=5"])
    assert more == dataclasses.replace(card, config=card.config | {"effort": 5}, scores={})
    loaded, stored = load_network(tmp_path / "f")
    assert (loaded.config.effort, stored) == (5, more)
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name])
    assert adjust(exported, tmp_path / "g") == card
    scored = adjust(exported, tmp_path / "g", {"excess": 0.25}, ["effort=5"])
    assert scored == dataclasses.replace(more, scores={"excess": 0.25})
    with pytest.raises(FileError, match="do not fit these settings"):
        adjust(exported, tmp_path / "h", overrides=["width=7"])
    assert not (tmp_path / "h").exists()


def test_base_run_has_one_stage(runs: Runs, tmp_path: Path) -> None:
    card = export(runs[0], tmp_path / "f")
    assert card == load_network(tmp_path / "f")[1]
    assert card.stages.keys() == {"base"}


def test_a_base_run_may_take_the_gains_of_a_file(
    runs: Runs, exported: Path, tmp_path: Path
) -> None:
    train(tmp_path / "longer", fake_recipe(steps=4, seed=21))
    longer = TrainingRun.open(tmp_path / "longer")
    card = export(longer, tmp_path / "both.safetensors", alpha=exported)
    weights = load_network(tmp_path / "both.safetensors")[0].state_dict()
    gains = load_network(exported)[0].state_dict()
    assert torch.equal(weights["alpha.0.weight"], gains["alpha.0.weight"])
    assert torch.equal(weights["base.0.weight"], longer.weights()[0]["base.0.weight"])
    assert card.stages["alpha"] == load_network(exported)[1].stages["alpha"]
    with pytest.raises(ConfigError, match="must be a base run"):
        export(runs[1], tmp_path / "no.safetensors", alpha=exported)
    base = tmp_path / "base.safetensors"
    export(runs[0], base)
    with pytest.raises(ConfigError, match="must have gains"):
        export(longer, tmp_path / "no.safetensors", alpha=base)


def test_the_base_of_a_kernel_network_takes_all_of_a_gain_network(tmp_path: Path) -> None:
    small = dataclasses.replace(KernelConfig(), encoder=EncoderConfig(width=8, layers=1, heads=1))
    gains = GainConfig(width=4, pair_width=3)
    base, alpha = (recipe("kernel", stage, PRIOR, config=small) for stage in STAGES)
    alpha = dataclasses.replace(alpha, config=dataclasses.replace(small, gains=gains))
    runs = [TrainingRun.start(tmp_path / chosen.stage, chosen) for chosen in (base, alpha)]
    for run in runs:
        network = build_network("kernel", run.recipe.config, PRIOR, seed=len(run.recipe.stage))
        assert isinstance(network, KernelNetwork)
        if network.gain_network is not None:
            network.gain_network.query_mean.fill_(2.0)
        run.save(Learner(run.recipe, network, torch.device("cpu")), Progress())
    source, file = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    export(runs[1], source)
    assert export(runs[0], file, alpha=source).stages.keys() == {"base", "alpha"}
    network, _ = load_network(file)
    assert network.config == alpha.config
    (own, _), (others, _) = (run.weights() for run in runs)
    for name, tensor in network.state_dict().items():
        expected = (others if name.startswith("gain_network") else own)[name]
        assert torch.equal(tensor, expected.to(tensor))


def test_predictions_survive(runs: Runs, exported: Path, task: Any) -> None:
    recipe = runs[1].recipe
    trained = build_network(recipe.network, recipe.config, recipe.prior, seed=9)
    trained.load_state_dict(runs[1].weights()[0])
    loaded, _ = load_network(exported)
    expected = trained.predict(trained.condition(task.X, task.y), task.Xq).mean
    assert torch.equal(loaded.predict(loaded.condition(task.X, task.y), task.Xq).mean, expected)


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_cut_short(exported: Path, tmp_path: Path, kept: int) -> None:
    (tmp_path / "f").write_bytes(exported.read_bytes()[:kept])
    with pytest.raises(FileError, match="cut short"):
        load_network(tmp_path / "f")


def test_states_of_runs_are_no_networks(runs: Runs) -> None:
    with pytest.raises(FileError, match="kind 'amortes-run-state'"):
        load_network(runs[0].newest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "magic"}, "no architecture 'magic'"),
        ({"config": {"size": 3}}, "config.size: no such setting"),
        ({"network": ["kernel"]}, "cannot build"),
        ({"config": None}, "config: expected a table"),
        ({"prior": {"kernel": "cubic"}}, "missing"),
        ({"prior": fake_recipe().prior.to_dict() | {"kernel": "cubic"}}, "kernel: must be one of"),
        ({"prior": "paper"}, "not a GPPrior description"),
        ({"prior": None}, "not a GPPrior description"),
        ({"stages": {}}, "no 'base'"),
        ({"stages": {"base": None}}, "cannot build"),
        ({"stages": None}, "cannot build"),
        ({"stages": {"base": {"recipe": {"tasks": {}}}}}, "no 'max_context'"),
        ({"colour": "red"}, "colour"),
        ({"config": {"width": 9}}, r"base.0.weight is torch.float32 \(8, 10\), not .* \(9, 10\)"),
    ],
)
def test_card_that_cannot_be(
    exported: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    tensors, about = read_tensors(exported, kind="amortes-network", version=1)
    write_tensors(tmp_path / "f", tensors, about | change, kind="amortes-network", version=1)
    with pytest.raises(FileError, match=message):
        load_network(tmp_path / "f")


def test_tensors_that_do_not_fit(exported: Path, tmp_path: Path) -> None:
    tensors, about = read_tensors(exported, kind="amortes-network", version=1)
    del tensors["base.0.bias"]
    tensors["extra"] = torch.zeros(2)
    tensors["alpha.0.bias"] = tensors["alpha.0.bias"].double()
    tensors["base.2.bias"][0] = float("nan")
    write_tensors(tmp_path / "f", tensors, about, kind="amortes-network", version=1)
    with pytest.raises(FileError) as error:
        load_network(tmp_path / "f")
    for problem in (
        "base.0.bias is missing",
        "extra is unknown",
        "alpha.0.bias is torch.float64",
        "base.2.bias has values that are not finite",
    ):
        assert problem in str(error.value)


def test_incomplete_card(exported: Path, tmp_path: Path) -> None:
    tensors, about = read_tensors(exported, kind="amortes-network", version=1)
    del about["prior"]
    write_tensors(tmp_path / "f", tensors, about, kind="amortes-network", version=1)
    with pytest.raises(FileError, match="prior"):
        load_network(tmp_path / "f")


def test_a_network_of_which_nothing_is_learned(tmp_path: Path) -> None:
    config, prior = KernelConfig(encoder=None), fake_recipe().prior
    card = export_untrained(tmp_path / "f", config, prior)
    network, stored = load_network(tmp_path / "f")
    assert stored == card
    assert (network.config, network.prior, network.trained_points) == (config, prior, None)
    assert (card.parameters, card.stages) == (0, {})


def test_run_without_weights(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no weights yet"):
        export(TrainingRun.start(tmp_path / "run", fake_recipe()), tmp_path / "f")
    assert not (tmp_path / "f").exists()
