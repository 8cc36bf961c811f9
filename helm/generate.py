"""Writes the chart's values.yaml, values.schema.json, the table of its README and the list of images (`make docs`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import yaml
from helm.values import write

HERE = Path(__file__).parent
CHART = HERE / "capture-canary"
BEGIN, END = "<!-- made by helm/generate.py -->\n", "<!-- end -->"


def version() -> str:
    """Return the chart's appVersion."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    return str(chart["appVersion"])


def files() -> dict[Path, str]:
    """Return each file with what it should hold."""
    readme = CHART / "README.md"
    before, _, rest = readme.read_text("utf-8").partition(BEGIN)
    return {
        CHART / "values.yaml": write.values_yaml(),
        CHART / "values.schema.json": write.values_schema(),
        HERE / "images.txt": write.images(version()),
        readme: f"{before}{BEGIN}\n{write.readme_table()}\n{END}{rest.partition(END)[2]}",
    }


def main() -> None:
    """Write them."""
    for path, text in files().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
