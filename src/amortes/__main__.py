"""`python -m amortes`: the same as `amortes`, where scripts are not on the path."""

from amortes.cli import main

if __name__ == "__main__":
    main()
