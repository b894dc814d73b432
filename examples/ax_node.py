"""amortes as a generation node of Ax.

`python examples/ax_node.py`: Ax keeps the experiment, amortes chooses the trials. The node makes a
new `Optimizer` of what Ax knows each time, so that it has no state to save besides that of Ax.
"""

import logging
import sys
from typing import Any

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.parameter import ChoiceParameter, FixedParameter, ParameterType, RangeParameter
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.utils.common.logger import set_ax_logger_levels

from amortes import Categorical, Float, Int, Optimizer, Ordinal

PARAMETERS = [
    RangeParameterConfig(name="lr", bounds=(1e-5, 1.0), parameter_type="float", scaling="log"),
    RangeParameterConfig(name="layers", bounds=(1, 8), parameter_type="int"),
    ChoiceParameterConfig(name="act", values=["relu", "gelu", "tanh"], parameter_type="str"),
]


def translate(parameter: Any) -> Any:
    """A parameter of Ax as one of amortes."""
    if isinstance(parameter, RangeParameter):
        kind = Int if parameter.parameter_type == ParameterType.INT else Float
        return kind(parameter.lower, parameter.upper, log=parameter.log_scale)
    if isinstance(parameter, ChoiceParameter):
        return (Ordinal if parameter.is_ordered else Categorical)(parameter.values)
    assert isinstance(parameter, FixedParameter)
    return parameter.value


class AmortesNode(ExternalGenerationNode):
    """Chooses trials of an experiment with one objective."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(name="amortes")
        self.seed = seed

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Take over all results, and the trials that failed."""
        objective = experiment.optimization_config.objective
        means = data.df[data.df["metric_name"] == objective.metric_names[0]]
        values = dict(zip(means["arm_name"], means["mean"], strict=True))
        parameters = experiment.search_space.parameters.items()
        self.optimizer = Optimizer(
            {name: translate(parameter) for name, parameter in parameters},
            "minimize" if objective.minimize else "maximize",
            seed=self.seed,
        )
        for trial in experiment.trials.values():
            for arm in trial.arms:
                if arm.name in values:
                    self.optimizer.tell(arm.parameters, values[arm.name])
                elif trial.status.is_failed or trial.status.is_abandoned:
                    self.optimizer.tell(arm.parameters, failed=True)

    def get_next_candidate(self, pending_parameters: list[Any]) -> Any:
        """The next config, with these under way."""
        under_way = [trial.config for trial in self.optimizer.trials if trial.status == "pending"]
        for config in pending_parameters:
            if config not in under_way:
                self.optimizer.enqueue(config)
                self.optimizer.ask()
        return self.optimizer.ask().config


def loss(config: dict[str, Any]) -> float:
    """Stands for a training run."""
    if config["lr"] > 0.3:
        raise ValueError("the loss diverged")
    return (
        abs(config["lr"] / 1e-3 - 1) / (config["lr"] / 1e-3 + 1)
        + 0.05 * abs(config["layers"] - 4)
        + 0.3 * (config["act"] != "gelu")
    )


def main(n_trials: int = 20) -> None:
    """Optimise, two trials at a time, and print what was found."""
    set_ax_logger_levels(logging.WARNING)
    client = Client()
    client.configure_experiment(parameters=PARAMETERS)
    client.configure_optimization(objective="-loss")
    client.set_generation_strategy(GenerationStrategy(name="amortes", nodes=[AmortesNode()]))
    for _ in range(n_trials // 2):
        for index, config in client.get_next_trials(max_trials=2).items():
            try:
                client.complete_trial(index, raw_data={"loss": loss(dict(config))})
            except ValueError as error:
                client.mark_trial_failed(index, failed_reason=str(error))
    config, prediction, _, _ = client.get_best_parameterization(use_model_predictions=False)
    print(f"best of {n_trials}: {prediction['loss'][0]:.3f} with {config}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
