from amortes.optimiser.plots.picture import Picture


def test_notebooks_get_an_image() -> None:
    picture = Picture(2.0, 1.0)
    picture.subplots().plot([0, 1], [0, 1])
    image = picture._repr_png_()
    assert image.startswith(b"\x89PNG")
    assert int.from_bytes(image[16:20]) == 220  # pixels across
