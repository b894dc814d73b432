from amortes.bench.report.comparison_sections import ranks_section, wins_section
from amortes.bench.report.parts import Study
from tests.bench.report.fake import results, run


def test_wins_against_gps_only_where_both_were_run(study: Study) -> None:
    (table,) = wins_section(study).tables
    against = set(zip(table.cells["problem"], table.cells["against"], strict=True))
    assert ("Branin, 2-D", "fully Bayesian GP JES") in against
    assert ("Hartmann, 4-D", "fully Bayesian GP JES") not in against
    assert ("Hartmann, 4-D", "MAP GP LogEI") in against


def test_win_rates_by_group_and_of_all_pairs() -> None:
    values = {"jes": (1.0, 2.0), "fb-jes": (0.0, 2.0)}
    sweep = results(
        *(run("branin", m, s, [v]) for m, vs in values.items() for s, v in enumerate(vs))
    )
    wins, matrix = wins_section(Study(sweep)).drawings
    assert wins.csv().splitlines()[1] == "synthetic,jes,fb-jes,0.7500,0.1979,0.9733,2"
    rates = [line.split(",")[:3] for line in matrix.csv().splitlines()[1:]]
    assert rates == [["jes", "fb-jes", "0.7500"], ["fb-jes", "jes", "0.2500"]]


def test_nothing_to_compare_is_said() -> None:
    lone = Study(results(run("branin", "jes", 0, [0.0])))
    assert "nothing to compare" in wins_section(lone).notes[0]
    assert ranks_section(lone).notes == ["No two methods share a run."]


def test_ranks_name_who_was_left_out(study: Study) -> None:
    section = ranks_section(study)
    (table,) = section.tables
    assert table.cells.columns[1] == "synthetic (8 methods)"
    assert "HPO-B (7 methods)" in table.cells.columns
    assert "all problems: not ranked, for too few runs: fully Bayesian GP JES." in section.notes
