"""A training script as `amortes optimize` likes it: arguments in, a number on the last line."""

import argparse
import warnings

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main() -> None:
    """Train a small network on handwritten digits, and print its error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--act", required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # few epochs on purpose
    network = MLPClassifier(
        (arguments.width,),
        activation=arguments.act,
        learning_rate_init=arguments.lr,
        max_iter=8,
        random_state=0,
    )
    X, y = load_digits(return_X_y=True)
    accuracy = cross_val_score(make_pipeline(StandardScaler(), network), X, y, cv=3).mean()
    print(f"error: {1.0 - accuracy:.4f}")


if __name__ == "__main__":
    main()
